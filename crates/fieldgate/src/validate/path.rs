//! Rules of a path in the schema of the storage version.

use serde_json::Value;

use crate::{
    FieldError, Path, PreRelease, Step,
    schema::{self, ListKeys},
    stanza::Located,
};

/// What makes an object an object of its kind.
const IDENTITY: [&str; 3] = ["apiVersion", "kind", "metadata"];

pub(super) fn check(located: &Located, schema: &Value) -> Vec<FieldError> {
    let paths = located.gate.field_paths.iter().zip(&located.paths_at);
    let fault = |path: &Path| fault(path, located.gate.pre_release, schema);
    paths.filter_map(|(path, at)| Some(FieldError::invalid(at, path.to_string(), fault(path)?))).collect()
}

fn fault(path: &Path, stage: PreRelease, schema: &Value) -> Option<String> {
    if let Some(detail) = identity_fault(path, schema) {
        return Some(detail);
    }
    let way = match schema::resolve(schema, path) {
        Ok(way) => way,
        Err(unresolved) => return Some(unresolved.to_string()),
    };
    let (last, steps) = path.steps().split_last()?;
    let Step::Named(name) = last else { return None };
    let parent = way[way.len() - 2];
    if is_list_key(name, steps, &way) {
        return Some(
            "must not be a key of its list (x-kubernetes-list-map-keys), which tells its items apart".to_owned(),
        );
    }
    let required = stage != PreRelease::Stable && lists_name(parent.get("required"), name);
    required.then(|| {
        "must not be a required field unless the gate is stable: without it every create would be refused; make it optional"
            .to_owned()
    })
}

fn is_list_key(name: &str, steps: &[Step], way: &[&Value]) -> bool {
    let list = (steps.last() == Some(&Step::Each)).then(|| way[way.len() - 3]);
    list.and_then(ListKeys::of).is_some_and(|keys| keys.0.iter().any(|(key, _)| key == name))
}

pub(super) fn lists_name(list: Option<&Value>, name: &str) -> bool {
    list.and_then(Value::as_array).is_some_and(|names| names.iter().any(|one| one == name))
}

/// These fields exist without being in the schema, so this is asked before the path is resolved.
fn identity_fault(path: &Path, schema: &Value) -> Option<String> {
    let mut here = Some(schema);
    for (i, step) in path.steps().iter().enumerate() {
        let embedded = here.and_then(|schema| schema.get("x-kubernetes-embedded-resource")) == Some(&Value::Bool(true));
        let Step::Named(name) = step else {
            here = here.and_then(|schema| schema::map_values(schema).or_else(|| schema.get("items")));
            continue;
        };
        if IDENTITY.contains(&name.as_str()) && (i == 0 || embedded) {
            let of = if i == 0 { "" } else { " of an embedded resource" };
            return Some(format!("must not be apiVersion, kind or metadata{of}, or lie in them"));
        }
        here = here.and_then(|schema| schema::named(schema, name));
    }
    None
}
