//! The scale of a custom resource: how many there should be and are, wherever its schema keeps that.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Value, json};

use crate::{
    field::FieldError,
    managed::Node,
    object,
    schema::Schema,
    status::{Result, Status},
    table::{self, Column},
};

pub(crate) const API_VERSION: &str = "autoscaling/v1";
pub(crate) const KIND: &str = "Scale";

/// What a scale may say.
pub(crate) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::parse(&form()));
/// The same for those who apply.
pub(crate) static TYPE: LazyLock<Node> = LazyLock::new(|| Node::of_object(&form()));

fn form() -> Value {
    let count = json!({"type": "integer", "format": "int32"});
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"replicas": count}},
        "status": {"type": "object", "properties": {"replicas": count, "selector": {"type": "string"}}},
    }})
}

/// Where in objects the parts of a scale are.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub spec_replicas: Place,
    status_replicas: Place,
    selector: Option<Place>,
    /// Where the wanted count lies, by version, as managers may know it by any.
    pub counts: Counts,
}

pub(crate) type Counts = BTreeMap<String, Vec<String>>;

/// A place such as `.spec.replicas`.
#[derive(Clone, Debug)]
pub(crate) struct Place {
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

    fn fault_of_count(&self, object: &Value) -> Option<FieldError> {
        let count = self.look(object).and_then(|found| match found {
            Some(found) => found.as_i64().map(Some).ok_or_else(|| self.unlike(found, "int64")),
            None => Ok(None),
        });
        match count {
            Err(why) => Some(FieldError::invalid(&self.text, 0, why)),
            Ok(Some(count @ ..0)) => Some(FieldError::invalid(&self.text, count, "should be a non-negative integer")),
            Ok(Some(count)) if count > i64::from(i32::MAX) => {
                Some(FieldError::invalid(&self.text, count, "should be less than or equal to 2147483647"))
            }
            Ok(_) => None,
        }
    }

    fn fault_of_text(&self, object: &Value) -> Option<FieldError> {
        let why = match self.look(object) {
            Ok(Some(found)) if !found.is_string() => self.unlike(found, "string"),
            Ok(_) => return None,
            Err(why) => why,
        };
        Some(FieldError::invalid(&self.text, "", why))
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
    pub(crate) fn parse(json: &Value) -> Option<Scale> {
        let place = |key: &str| json[key].as_str().filter(|text| !text.is_empty()).map(Place::parse);
        Some(Scale {
            spec_replicas: place("specReplicasPath")?,
            status_replicas: place("statusReplicasPath")?,
            selector: place("labelSelectorPath"),
            counts: Counts::new(),
        })
    }

    /// The same beside the scales of all versions.
    pub(crate) fn parse_beside<'a>(json: &Value, all: impl IntoIterator<Item = (String, &'a Value)>) -> Option<Scale> {
        let counts =
            all.into_iter().filter_map(|(version, json)| Some((version, Scale::parse(json)?.spec_replicas.names)));
        let counts = counts.collect();
        Some(Scale { counts, ..Scale::parse(json)? })
    }

    /// The scale of an object, as it is read. One that says nothing of how many there should be has none.
    pub(crate) fn of(&self, object: &Value) -> Result<Value> {
        if self.spec_replicas.find(object).is_none() {
            let why = format!("the spec replicas field {:?} does not exist", self.spec_replicas.text);
            return Err(Status::internal(why));
        }
        Ok(self.draft(object))
    }

    /// The same, with 0 for what is not said.
    pub(crate) fn draft(&self, object: &Value) -> Value {
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

    /// The same for a patch, which must say how many there should be if nobody has.
    pub(crate) fn unsaid(&self, object: &Value) -> Value {
        let mut scale = self.draft(object);
        if self.spec_replicas.find(object).is_none() {
            scale["spec"]["replicas"] = i32::MIN.into();
        }
        scale
    }

    pub(crate) fn check_said(&self, scale: &Value) -> Result<()> {
        if scale["spec"]["replicas"] == i32::MIN {
            Err(Status::bad_request(format!("the spec replicas field {:?} cannot be empty", self.spec_replicas.text)))
        } else {
            Ok(())
        }
    }

    /// Puts the wanted count of a scale into an object, if the scale has one.
    pub(crate) fn set(&self, object: &mut Value, scale: &Value) -> Result<()> {
        let replicas = &scale["spec"]["replicas"];
        if replicas.is_null() {
            return Ok(());
        }
        if self.spec_replicas.put(object, replicas.clone()) {
            Ok(())
        } else {
            Err(Status::internal(format!("there is no place for {} in the object", self.spec_replicas.text)))
        }
    }

    /// What is wrong with the parts of a scale in an object about to be stored.
    /// `spec` says whether the count that is wanted is judged too.
    pub(crate) fn check(&self, object: &Value, spec: bool) -> Vec<FieldError> {
        let wanted = Some(&self.spec_replicas).filter(|_| spec);
        let counts = wanted.into_iter().chain([&self.status_replicas]).filter_map(|place| place.fault_of_count(object));
        counts.chain(self.selector.as_ref().and_then(|place| place.fault_of_text(object))).collect()
    }
}

/// What is shown of a scale.
pub(crate) fn columns() -> Vec<Column> {
    let count = |name: &str, path: &str, description: &str| json!({"name": name, "type": "integer", "jsonPath": path, "description": description});
    let counts = [
        count("Desired", ".spec.replicas", "Number of desired replicas"),
        count("Available", ".status.replicas", "Number of actual replicas"),
        table::creation(),
    ];
    table::custom_columns(&counts)
}

/// What is wrong with `subresources.scale` of a definition, which stands at `path`.
pub(crate) fn check_paths(json: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, roots, words) in [
        ("specReplicasPath", &[".spec."][..], ".spec"),
        ("statusReplicasPath", &[".status."][..], ".status"),
        ("labelSelectorPath", &[".spec.", ".status."][..], "either .spec or .status"),
    ] {
        let (at, text) = (format!("{path}.{key}"), json[key].as_str().unwrap_or_default());
        if text.is_empty() {
            if key != "labelSelectorPath" {
                errors.push(FieldError::required(at, ""));
            }
        } else if !text.starts_with('.') {
            errors.push(FieldError::invalid(at, text, "must be a simple json path starting with ."));
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

    #[test_case(json!({"spec": {"a": {"n": 1}}}) => ""; "sound")]
    #[test_case(json!({"spec": {"a": {"n": "x"}}}) => ".spec.a.n: Invalid value: 0: .spec.a.n accessor error: x is of the type string, expected int64"; "text")]
    #[test_case(json!({"spec": 7}) => ".spec.a.n: Invalid value: 0: .spec.a.n accessor error: 7 is of the type int64, expected map[string]interface{}"; "in the way")]
    #[test_case(json!({"spec": {"a": {"n": -1}}}) => ".spec.a.n: Invalid value: -1: should be a non-negative integer"; "negative")]
    #[test_case(json!({"status": {"n": 3_000_000_000_i64}}) => ".status.n: Invalid value: 3000000000: should be less than or equal to 2147483647"; "too many")]
    #[test_case(json!({"status": {"s": 1}}) => ".status.s: Invalid value: \"\": .status.s accessor error: 1 is of the type int64, expected string"; "selector")]
    #[test_case(json!({"status": "x"}) => ".status.n: Invalid value: 0: .status.n accessor error: x is of the type string, expected map[string]interface{}.status.s: Invalid value: \"\": .status.s accessor error: x is of the type string, expected map[string]interface{}"; "in the way of both")]
    fn objects(object: Value) -> String {
        scale().check(&object, true).iter().map(FieldError::to_string).collect()
    }

    #[test_case(json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}) => ""; "sound")]
    #[test_case(json!({"statusReplicasPath": ".status.n"}) => "p.specReplicasPath: Required value"; "missing")]
    #[test_case(json!({"specReplicasPath": ".status.n", "statusReplicasPath": ".status.n"}) => r#"p.specReplicasPath: Invalid value: ".status.n": should be a json path under .spec"#; "elsewhere")]
    #[test_case(json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.l[0]"}) => ""; "a name like an item")]
    #[test_case(json!({"specReplicasPath": "spec.n", "statusReplicasPath": ".status.n"}) => r#"p.specReplicasPath: Invalid value: "spec.n": must be a simple json path starting with ."#; "no dot")]
    #[test_case(json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".x.y"}) => r#"p.labelSelectorPath: Invalid value: ".x.y": should be a json path under either .spec or .status"#; "selector")]
    fn definitions(json: Value) -> String {
        check_paths(&json, "p").iter().map(FieldError::to_string).collect()
    }
}
