//! Registries of all versions, kept between steps: they never change, and to read a hundred takes longer than the rest of a step.

use std::collections::BTreeMap;

use featureset::{
    Registry,
    config_map::{of_config_map, version_of},
};
use serde_json::Value;

#[derive(Default)]
pub struct Registries {
    known: BTreeMap<String, Result<Registry, String>>,
    /// The object that each was read from: uid and version.
    from: BTreeMap<String, [Value; 2]>,
}

impl Registries {
    /// By version; what cannot be read says why.
    pub fn known(&self) -> &BTreeMap<String, Result<Registry, String>> {
        &self.known
    }

    /// Takes what is there now. Only what is new, or was written anew in spite of all, is read.
    pub fn refresh(&mut self, objects: &[Value]) {
        let there: BTreeMap<&str, &Value> =
            objects.iter().filter_map(|object| version_of(object).map(|version| (version, object))).collect();
        self.known.retain(|version, _| there.contains_key(version.as_str()));
        self.from.retain(|version, _| there.contains_key(version.as_str()));
        for (version, object) in there {
            let id = ["uid", "resourceVersion"].map(|key| object["metadata"][key].clone());
            if self.from.get(version) != Some(&id) {
                self.known.insert(version.to_owned(), of_config_map(object).map_err(|error| error.to_string()));
                self.from.insert(version.to_owned(), id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use featureset::{GatesFile, config_map::to_config_map};

    use super::*;

    fn object(version: &str, resource_version: &str) -> Value {
        let file = GatesFile::parse(&format!("schema = 1\nversion = \"{version}\"\n")).unwrap();
        let mut object = to_config_map(&Registry::of_file(&file, version).unwrap(), "n");
        object["metadata"]["uid"] = "u".into();
        object["metadata"]["resourceVersion"] = resource_version.into();
        object
    }

    fn said(registries: &Registries) -> Vec<String> {
        let how = |result: &Result<Registry, String>| if result.is_ok() { "good" } else { "bad" };
        registries.known().iter().map(|(version, result)| format!("{version} {}", how(result))).collect()
    }

    #[test]
    fn only_what_is_new_is_read() {
        let mut registries = Registries::default();
        registries.refresh(&[object("1.4.0", "1"), object("1.5.0", "2")]);
        assert_eq!(said(&registries), ["1.4.0 good", "1.5.0 good"]);
        // The same object is not looked at again, whatever is in it; a new version of it is.
        let mut spoilt = object("1.4.0", "1");
        spoilt["data"] = Value::Null;
        registries.refresh(&[spoilt.clone(), object("1.5.0", "2")]);
        assert_eq!(said(&registries), ["1.4.0 good", "1.5.0 good"]);
        spoilt["metadata"]["resourceVersion"] = "3".into();
        registries.refresh(&[spoilt]);
        assert_eq!(said(&registries), ["1.4.0 bad"], "and what is gone is gone");
    }
}
