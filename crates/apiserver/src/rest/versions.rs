//! Objects between the version they are stored in and the version a client speaks.

use serde_json::Value;

use super::{
    Api,
    admit::{encode, readable, served, settle, stored},
    shown::{Shown, Stored, Wanted},
    views::Views,
};
use crate::{
    convert::Converter,
    object,
    resource::Resource,
    schema,
    status::{Result, Status},
    store::Entry,
};

impl Api {
    /// An object of the store as clients of this version see it.
    pub(super) async fn read(&self, resource: &Resource, entry: &Entry) -> Result<Value> {
        Ok(self.read_all(resource, std::slice::from_ref(entry)).await?.remove(0))
    }

    /// The same, as text where that will do.
    pub(super) async fn show(&self, resource: &Resource, entry: &Entry, wanted: Wanted) -> Result<Shown> {
        match (wanted == Wanted::Text).then(|| Stored::of(resource, entry)).flatten() {
            Some(stored) => Ok(Shown::Text(stored)),
            None => self.read(resource, entry).await.map(Shown::Tree),
        }
    }

    /// The same for many.
    pub(super) async fn show_all(&self, resource: &Resource, entries: &[Entry], wanted: Wanted) -> Result<Vec<Shown>> {
        if wanted == Wanted::Trees || resource.converter.is_some() {
            return Ok(self.read_all(resource, entries).await?.into_iter().map(Shown::Tree).collect());
        }
        let shown = |entry: &Entry| match Stored::of(resource, entry) {
            Some(stored) => Ok(Shown::Text(stored)),
            None => readable(resource, entry).map(Shown::Tree),
        };
        entries.iter().map(shown).collect()
    }

    /// Many objects as trees; a webhook is asked once for all that it must convert.
    pub(super) async fn read_all(&self, resource: &Resource, entries: &[Entry]) -> Result<Vec<Value>> {
        if resource.converter.is_none() {
            return entries.iter().map(|entry| readable(resource, entry)).collect();
        }
        let settled = |entry: &Entry| {
            let mut object = stored(resource, entry)?;
            settle(resource, &mut object);
            Ok(object)
        };
        let objects = entries.iter().map(settled).collect::<Result<Vec<_>>>()?;
        let objects = convert(resource, objects, &resource.api_version()).await?;
        Ok(objects.into_iter().zip(entries).map(|(object, entry)| served(resource, object, entry.revision)).collect())
    }

    /// An object that was read as it is stored, in the version clients see.
    pub(super) async fn shown(&self, resource: &Resource, object: Value) -> Result<Value> {
        Ok(convert(resource, vec![object], &resource.api_version()).await?.remove(0))
    }

    /// What is stored of an object.
    pub(super) async fn encoded(&self, resource: &Resource, object: &Value) -> Result<Value> {
        let mut object = convert(resource, vec![object.clone()], &resource.stored_version).await?.remove(0);
        keep_storable(resource, &mut object);
        Ok(encode(resource, &object))
    }
}

/// The answer to a write: what will be read of what is stored. Versions may have different defaults, and a webhook may have changed
/// labels on the way there and may on the way back.
pub(super) async fn answer(resource: &Resource, views: &mut Views<'_>, object: Value, kept: &Value) -> Result<Value> {
    let alike = resource.schemas.is_none() && resource.converter.is_none();
    if alike || kept["apiVersion"] == resource.api_version() {
        return Ok(object);
    }
    let mut read = kept.clone();
    settle(resource, &mut read);
    let mut read = served(resource, views.now(&read, &resource.api_version()).await?, 0);
    match object::meta(&object, "resourceVersion") {
        "" => drop(object::meta_mut(&mut read).remove("resourceVersion")),
        version => object::set(&mut read, "resourceVersion", version),
    }
    Ok(read)
}

/// Leaves out what will not be stored, so that it is not answered either, where versions differ in their names alone.
pub(super) fn fit(resource: &Resource, object: &mut Value) {
    if resource.converter.is_none() {
        keep_storable(resource, object);
    }
}

/// Takes out of an object what the caller's version has no place for, where versions differ in their names alone. If there is such, the
/// object as it will be stored comes back.
pub(super) fn hide(resource: &Resource, object: &mut Value) -> Option<Value> {
    if resource.converter.is_some() || resource.stored_schema.is_none() {
        return None;
    }
    let mut kept = object.clone();
    keep_storable(resource, &mut kept);
    (!schema::prune(&resource.schema, object).is_empty()).then_some(kept)
}

/// Leaves out what the version that objects are stored in has no place for.
fn keep_storable(resource: &Resource, object: &mut Value) {
    if let Some(schema) = &resource.stored_schema {
        schema::prune(schema, object);
    }
}

/// Brings those objects to a version that are in another.
pub(super) async fn convert(resource: &Resource, mut objects: Vec<Value>, desired: &str) -> Result<Vec<Value>> {
    let Some(converter) = &resource.converter else { return Ok(objects) };
    let others: Vec<usize> = (0..objects.len()).filter(|index| objects[*index]["apiVersion"] != desired).collect();
    if others.is_empty() {
        return Ok(objects);
    }
    let converter: &Converter = converter.as_ref().as_ref().map_err(Status::internal)?;
    let sent = others.iter().map(|index| objects[*index].clone()).collect();
    let converted = converter.convert(sent, desired).await.map_err(Status::internal)?;
    for (index, object) in others.into_iter().zip(converted) {
        objects[index] = object;
    }
    Ok(objects)
}
