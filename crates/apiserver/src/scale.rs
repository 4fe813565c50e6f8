//! The scale of a custom resource: how many there should be and are, wherever its schema keeps that.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::{
    field::FieldError,
    object,
    patch::unlike,
    schema::Schema,
    status::{Result, Status},
    table::Column,
};

pub const API_VERSION: &str = "autoscaling/v1";
pub const KIND: &str = "Scale";

/// What a scale may say.
pub static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let count = json!({"type": "integer", "format": "int32"});
    Schema::parse(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"replicas": count}},
        "status": {"type": "object", "properties": {"replicas": count, "selector": {"type": "string"}}},
    }}))
});

/// Where in objects the parts of a scale are.
#[derive(Clone, Debug)]
pub struct Scale {
    pub spec_replicas: Place,
    status_replicas: Place,
    selector: Option<Place>,
}

/// A place such as `.spec.replicas`.
#[derive(Clone, Debug)]
pub struct Place {
    pub text: String,
    names: Vec<String>,
}

impl Place {
    fn parse(text: &str) -> Place {
        let names = text.split('.').skip(1).map(str::to_owned).collect();
        Place { text: text.to_owned(), names }
    }

    fn find<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.names.iter().try_fold(object, |value, name| value.get(name)).filter(|value| !value.is_null())
    }

    /// The same; the error is Kubernetes' for something else that is in the way.
    fn look<'a>(&self, object: &'a Value) -> std::result::Result<Option<&'a Value>, String> {
        let mut here = object;
        for name in &self.names {
            match here {
                Value::Object(map) => match map.get(name) {
                    Some(next) => here = next,
                    None => return Ok(None),
                },
                Value::Null => return Ok(None),
                other => return Err(self.unlike(other, "map[string]interface{}")),
            }
        }
        Ok(Some(here).filter(|value| !value.is_null()))
    }

    fn unlike(&self, found: &Value, wanted: &str) -> String {
        let kind = match found {
            Value::Null => "<nil>",
            Value::Bool(_) => "bool",
            Value::Number(number) if number.is_i64() => "int64",
            Value::Number(_) => "float64",
            Value::String(_) => "string",
            Value::Array(_) => "[]interface {}",
            Value::Object(_) => "map[string]interface {}",
        };
        let shown = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
        format!("{} accessor error: {shown} is of the type {kind}, expected {wanted}", self.text)
    }

    /// Makes what is missing on the way; false if something else is in the way.
    fn put(&self, object: &mut Value, value: Value) -> bool {
        let Some((last, way)) = self.names.split_last() else { return false };
        let mut here = object;
        for name in way {
            let Some(map) = here.as_object_mut() else { return false };
            here = map.entry(name).or_insert_with(|| json!({}));
        }
        here.as_object_mut().map(|map| map.insert(last.clone(), value)).is_some()
    }
}

impl Scale {
    /// From `subresources.scale` of a version.
    pub fn parse(json: &Value) -> Option<Scale> {
        let place = |key: &str| json[key].as_str().filter(|text| !text.is_empty()).map(Place::parse);
        Some(Scale {
            spec_replicas: place("specReplicasPath")?,
            status_replicas: place("statusReplicasPath")?,
            selector: place("labelSelectorPath"),
        })
    }

    /// The scale of an object, as it is read. One that says nothing of how many there should be has none.
    pub fn of(&self, object: &Value) -> Result<Value> {
        if self.spec_replicas.find(object).is_none() {
            let why = format!("the spec replicas field {:?} does not exist", self.spec_replicas.text);
            return Err(Status::internal(why));
        }
        Ok(self.draft(object))
    }

    /// The same, with 0 for what is not said.
    pub fn draft(&self, object: &Value) -> Value {
        let count = |place: &Place| place.find(object).and_then(Value::as_i64).unwrap_or_default();
        let mut scale = json!({
            "kind": KIND, "apiVersion": API_VERSION, "metadata": {}, "spec": {"replicas": count(&self.spec_replicas)},
            "status": {"replicas": count(&self.status_replicas)},
        });
        for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            object::keep(&mut scale, key, object);
        }
        let selector = self.selector.as_ref().and_then(|place| place.find(object)).and_then(Value::as_str);
        if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
            scale["status"]["selector"] = selector.into();
        }
        scale
    }

    /// Puts the wanted count of a scale into an object, if the scale has one.
    pub fn set(&self, object: &mut Value, scale: &Value) -> Result<()> {
        let replicas = &scale["spec"]["replicas"];
        if replicas.is_null() {
            return Ok(());
        }
        match self.spec_replicas.put(object, replicas.clone()) {
            true => Ok(()),
            false => Err(Status::internal(format!("there is no place for {} in the object", self.spec_replicas.text))),
        }
    }

    /// What is wrong with the parts of a scale in an object about to be stored.
    pub fn check(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for place in [&self.spec_replicas, &self.status_replicas] {
            let found = match place.look(object) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(why) => {
                    errors.push(FieldError::invalid(&place.text, 0, why));
                    continue;
                }
            };
            let detail = match found.as_i64() {
                None => {
                    errors.push(FieldError::invalid(&place.text, 0, place.unlike(found, "int64")));
                    continue;
                }
                Some(..0) => "should be a non-negative integer",
                Some(count) if count > i64::from(i32::MAX) => "should be less than or equal to 2147483647",
                Some(_) => continue,
            };
            errors.push(FieldError::invalid(&place.text, found.clone(), detail));
        }
        if let Some((place, found)) = self.selector.as_ref().and_then(|place| Some((place, place.find(object)?)))
            && !found.is_string()
        {
            errors.push(FieldError::invalid(&place.text, found.clone(), "should be a string"));
        }
        errors
    }
}

/// What cannot be read as a scale, in the words of Kubernetes' decoder.
pub fn fault(scale: &Value) -> Option<String> {
    let (spec, status) = (&scale["spec"], &scale["status"]);
    let parts = [(spec, "spec", "v1.ScaleSpec"), (status, "status", "v1.ScaleStatus")];
    let part = parts.into_iter().find(|(part, ..)| !part.is_object() && !part.is_null());
    if let Some((part, name, kind)) = part {
        return Some(unlike(part, &format!("Go struct field Scale.{name} of type {kind}")));
    }
    let counts = [(&spec["replicas"], "ScaleSpec.spec"), (&status["replicas"], "ScaleStatus.status")];
    let fits = |count: &Value| count.is_null() || count.as_i64().is_some_and(|count| i32::try_from(count).is_ok());
    let (count, place) = counts.into_iter().find(|(count, _)| !fits(count))?;
    Some(unlike(count, &format!("Go struct field {place}.replicas of type int32")))
}

/// What is shown of a scale.
pub fn columns() -> Vec<Column> {
    let desired = Column::path("Desired", "integer", ".spec.replicas", "How many there should be.");
    let available = Column::path("Available", "integer", ".status.replicas", "How many there are.");
    vec![Column::name(), desired, available, Column::age()]
}

/// What is wrong with `subresources.scale` of a definition, which stands at `path`.
pub fn check_paths(json: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, roots, words) in [
        ("specReplicasPath", &[".spec."][..], ".spec"),
        ("statusReplicasPath", &[".status."][..], ".status"),
        ("labelSelectorPath", &[".spec.", ".status."][..], "either .spec or .status"),
    ] {
        let (at, text) = (format!("{path}.{key}"), json[key].as_str().unwrap_or_default());
        let steps = || text.split('.').skip(1);
        if text.is_empty() {
            if key != "labelSelectorPath" {
                errors.push(FieldError::required(at, ""));
            }
        } else if !text.starts_with('.') {
            errors.push(FieldError::invalid(at, text, "must be a simple json path starting with ."));
        } else if steps().any(|step| step.is_empty() || step.contains(['[', ']', '\'', '"'])) {
            errors.push(FieldError::invalid(at, text, "must be a json path in the dot notation"));
        } else if !roots.iter().any(|root| text.starts_with(root)) {
            errors.push(FieldError::invalid(at, text, format!("should be a json path under {words}")));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn scale() -> Scale {
        Scale::parse(&json!({"specReplicasPath": ".spec.a.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.s"})).unwrap()
    }

    #[test]
    fn a_scale_is_read_and_written_where_it_is_kept() {
        let mut object = json!({"metadata": {"name": "x", "labels": {}}, "spec": {"a": {"n": 2, "m": 1}}, "status": {"n": 1, "s": "a=b"}});
        let read = scale().of(&object).unwrap();
        let wanted = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "x"}, "spec": {"replicas": 2},
            "status": {"replicas": 1, "selector": "a=b"}});
        assert_eq!(read, wanted);
        scale().set(&mut object, &json!({"spec": {"replicas": 5}})).unwrap();
        assert_eq!(object["spec"], json!({"a": {"n": 5, "m": 1}}));
        let mut empty = json!({});
        assert!(
            scale().of(&empty).unwrap_err().message.ends_with(r#"the spec replicas field ".spec.a.n" does not exist"#)
        );
        scale().set(&mut empty, &json!({"spec": {"replicas": 5}})).unwrap();
        assert_eq!(empty, json!({"spec": {"a": {"n": 5}}}));
        assert!(scale().set(&mut json!({"spec": 1}), &json!({"spec": {"replicas": 5}})).is_err());
    }

    #[test_case(json!({"spec": {"replicas": 1}, "status": null}) => None; "sound")]
    #[test_case(json!({"spec": 7}) => Some("json: cannot unmarshal number into Go struct field Scale.spec of type v1.ScaleSpec".into()); "spec")]
    #[test_case(json!({"spec": {"replicas": "x"}}) => Some("json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32".into()); "text")]
    #[test_case(json!({"spec": {"replicas": 3_000_000_000_i64}}) => Some("json: cannot unmarshal number 3000000000 into Go struct field ScaleSpec.spec.replicas of type int32".into()); "many")]
    fn scales(sent: Value) -> Option<String> {
        fault(&sent)
    }

    #[test_case(json!({"spec": {"a": {"n": 1}}}) => ""; "sound")]
    #[test_case(json!({"spec": {"a": {"n": "x"}}}) => ".spec.a.n: Invalid value: 0: .spec.a.n accessor error: x is of the type string, expected int64"; "text")]
    #[test_case(json!({"spec": 7}) => ".spec.a.n: Invalid value: 0: .spec.a.n accessor error: 7 is of the type int64, expected map[string]interface{}"; "in the way")]
    #[test_case(json!({"spec": {"a": {"n": -1}}}) => ".spec.a.n: Invalid value: -1: should be a non-negative integer"; "negative")]
    #[test_case(json!({"status": {"n": 3_000_000_000_i64}}) => ".status.n: Invalid value: 3000000000: should be less than or equal to 2147483647"; "too many")]
    #[test_case(json!({"status": {"s": 1}}) => ".status.s: Invalid value: 1: should be a string"; "selector")]
    fn objects(object: Value) -> String {
        scale().check(&object).iter().map(FieldError::to_string).collect()
    }

    #[test_case(json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}) => ""; "sound")]
    #[test_case(json!({"statusReplicasPath": ".status.n"}) => "p.specReplicasPath: Required value"; "missing")]
    #[test_case(json!({"specReplicasPath": ".status.n", "statusReplicasPath": ".status.n"}) => r#"p.specReplicasPath: Invalid value: ".status.n": should be a json path under .spec"#; "elsewhere")]
    #[test_case(json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.l[0]"}) => r#"p.statusReplicasPath: Invalid value: ".status.l[0]": must be a json path in the dot notation"#; "an item")]
    #[test_case(json!({"specReplicasPath": "spec.n", "statusReplicasPath": ".status.n"}) => r#"p.specReplicasPath: Invalid value: "spec.n": must be a simple json path starting with ."#; "no dot")]
    #[test_case(json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".x.y"}) => r#"p.labelSelectorPath: Invalid value: ".x.y": should be a json path under either .spec or .status"#; "selector")]
    fn definitions(json: Value) -> String {
        check_paths(&json, "p").iter().map(FieldError::to_string).collect()
    }
}
