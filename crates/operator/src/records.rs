//! Registries and the audit trail, kept between steps: a registry never changes, the trail seldom, and a hundred of them are megabytes.
//! A step asks for the metadata of all, and reads only what is new.

use std::collections::BTreeMap;

use featureset::{
    Registry,
    audit::{self, AuditError, Trail},
    config_map::{of_config_map, registry_name, registry_of},
};
use kubeapi::{ApiError, Kube, Place};
use serde_json::Value;

/// Uid and version of an object.
type Id = [Value; 2];

#[derive(Default)]
pub(crate) struct Records {
    /// By version; what cannot be read says why.
    registries: BTreeMap<String, Result<Registry, String>>,
    /// Metadata of the registries that are there.
    metadata: Vec<Value>,
    /// Objects of the trail by name.
    trail: BTreeMap<String, Value>,
    /// What each was read from, by name.
    from: BTreeMap<String, Id>,
}

impl Records {
    pub(crate) fn registries(&self) -> &BTreeMap<String, Result<Registry, String>> {
        &self.registries
    }

    pub(crate) fn metadata(&self) -> &[Value] {
        &self.metadata
    }

    pub(crate) fn trail(&self) -> Result<Trail, AuditError> {
        Trail::read(&self.trail.values().cloned().collect::<Vec<_>>())
    }

    /// Takes what is there now. By names, not by labels: what somebody has taken the label off must not be overlooked, nor
    /// what stands in the way of the own registry.
    pub(crate) async fn refresh(&mut self, kube: &Kube, place: &Place, own: &str) -> Result<(), ApiError> {
        let all = kube.list(&place.clone().metadata_only(), None).await?;
        for name in self.retain(all, own) {
            if let Some(object) = kube.get(place, &name).await? {
                self.take(object, own);
            }
        }
        Ok(())
    }

    /// Forgets what is gone; the names of what is to be read.
    fn retain(&mut self, all: Vec<Value>, own: &str) -> Vec<String> {
        let records: BTreeMap<String, Value> =
            all.into_iter().filter(|one| is_record(one, own)).map(|one| (name_of(&one), one)).collect();
        self.from.retain(|name, id| records.get(name).is_some_and(|one| id_of(one) == *id));
        let (from, versions) = (&self.from, records.values().filter_map(|one| version_of(one, own)));
        let versions: Vec<&str> = versions.collect();
        self.registries.retain(|version, _| versions.contains(&version.as_str()));
        self.trail.retain(|name, _| records.contains_key(name));
        let new = records.keys().filter(|name| !from.contains_key(*name)).cloned().collect();
        self.metadata = records.into_values().filter(|one| registry_of(one).is_some()).collect();
        new
    }

    fn take(&mut self, object: Value, own: &str) {
        self.from.insert(name_of(&object), id_of(&object));
        match version_of(&object, own).map(str::to_owned) {
            Some(version) => {
                self.registries.insert(version, of_config_map(&object).map_err(|error| error.to_string()));
            }
            None => drop(self.trail.insert(name_of(&object), object)),
        }
    }
}

fn is_record(object: &Value, own: &str) -> bool {
    audit::is_part(object) || version_of(object, own).is_some()
}

/// The version whose registry it is. Whatever has the name of the own one is in its place.
fn version_of<'a>(object: &'a Value, own: &'a str) -> Option<&'a str> {
    let in_place_of_own = object["metadata"]["name"] == registry_name(own);
    registry_of(object).or(in_place_of_own.then_some(own))
}

fn id_of(object: &Value) -> Id {
    ["uid", "resourceVersion"].map(|key| object["metadata"][key].clone())
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use featureset::{GatesFile, config_map::to_config_map};
    use serde_json::json;

    use super::*;

    fn object(version: &str, resource_version: &str) -> Value {
        let file = GatesFile::parse(&format!("schema = 1\nversion = \"{version}\"\n")).unwrap();
        let mut object = to_config_map(&Registry::of_file(&file, version).unwrap(), "n");
        object["metadata"]["uid"] = "u".into();
        object["metadata"]["resourceVersion"] = resource_version.into();
        object
    }

    /// Returns the names of the objects that were read.
    fn refresh(records: &mut Records, there: &[&Value]) -> Vec<String> {
        let metadata = there.iter().map(|object| json!({"metadata": object["metadata"]})).collect();
        let names = records.retain(metadata, "1.4.0");
        for object in there.iter().filter(|object| names.contains(&name_of(object))) {
            records.take((*object).clone(), "1.4.0");
        }
        names
    }

    fn said(records: &Records) -> Vec<String> {
        let how = |result: &Result<Registry, String>| result.as_ref().err().map_or("good", String::as_str).to_owned();
        records.registries().iter().map(|(version, result)| format!("{version} {}", how(result))).collect()
    }

    #[test]
    fn only_changed_objects_are_read() {
        let mut records = Records::default();
        let (old, own) = (object("1.3.0", "1"), object("1.4.0", "2"));
        assert_eq!(refresh(&mut records, &[&old, &own]), ["gates-1.3.0", "gates-1.4.0"]);
        assert_eq!(refresh(&mut records, &[&own, &old]), [""; 0], "the same, in another order");
        assert_eq!(said(&records), ["1.3.0 good", "1.4.0 good"]);
        let mut spoilt = object("1.3.0", "3");
        spoilt["data"] = Value::Null;
        assert_eq!(refresh(&mut records, &[&spoilt]), ["gates-1.3.0"]);
        assert_eq!(said(&records), ["1.3.0 it is not a registry: the object has no data[\"registry.json\"]"]);
        assert_eq!(records.metadata().len(), 1, "the missing object is forgotten");
    }

    #[test]
    fn an_object_with_the_name_of_the_own_registry_is_reported() {
        let mut records = Records::default();
        let mut stranger = object("1.4.0", "1");
        stranger["metadata"]["labels"] = Value::Null;
        stranger["metadata"]["annotations"] = Value::Null;
        let mut copy = object("1.3.0", "1");
        copy["metadata"]["name"] = "copy".into();
        assert_eq!(refresh(&mut records, &[&stranger, &copy]), ["gates-1.4.0"]);
        assert_eq!(said(&records), ["1.4.0 its content is of version \"1.4.0\", and its annotation says \"\""]);
        assert!(records.metadata().is_empty(), "nothing of it is marked or removed");
    }

    #[test]
    fn the_trail_is_read_without_its_label() {
        let mut records = Records::default();
        let entry = json!({"time": "t", "kind": "chosen", "set": "TechPreviewNoUpgrade", "controllerVersion": "1.4.0"});
        let part = json!({"metadata": {"name": "gates-audit-1", "uid": "u", "resourceVersion": "1"},
            "data": {"000001": entry.to_string()}});
        refresh(&mut records, &[&part]);
        assert!(records.trail().unwrap().one_way().is_some());
        refresh(&mut records, &[]);
        assert!(records.trail().unwrap().entries.is_empty());
    }
}
