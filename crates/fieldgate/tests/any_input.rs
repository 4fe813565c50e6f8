//! Nothing from outside makes the engine panic, and texts of paths survive reading and printing.

use fieldgate::{Declaration, Gates, Gating, Part, Path, Write, validate, validate_crd};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::generate::{any_json, object, stanza};

proptest! {
    #[test]
    fn any_json_is_taken(
        stanza in prop_oneof![any_json(), stanza()],
        schema in any_json(),
        stored in prop_oneof![any_json(), object()],
        new in prop_oneof![any_json(), object()],
    ) {
        let gates = Gates::parse_lenient(&stanza);
        let gating = Gating::new(&gates, &schema);
        let write = Write { stored: Some(&stored), read: Some(&new), sent: Some(&stored), part: Part::Whole };
        gating.write(&write, new.clone());
        gating.strip_defaults(&mut schema.clone());
        gates.publish(&mut schema.clone(), "example.com");
        let _ = gating.unfrozen(&stored);
        let entries = |value: &Value| [json!({ "manager": "a", "fieldsV1": value }), value.clone()];
        let _ = gating.freeze_managed_fields(&entries(&stored), &entries(&new), &new);
        let declaration = |stanza, schema| Declaration { stanza, at: "spec", schema, scale: &stored };
        validate(&declaration(&stanza, &schema), Some(&declaration(&new, &stored)));
        validate_crd(&schema, Some(&new));
    }

    #[test]
    fn any_text_is_a_path_or_an_error(text in r"[.\[\]'*\\a-c \u{e9}]{0,24}") {
        if let Ok(path) = text.parse::<Path>() {
            let normal = path.to_string();
            let again: Path = normal.parse().unwrap();
            prop_assert_eq!(again.to_string(), normal);
            prop_assert_eq!(again, path);
        }
    }

    #[test]
    fn any_unicode_is_a_path_or_an_error(text in any::<String>()) {
        let _ = text.parse::<Path>();
    }

    /// Every key there can be has a path.
    #[test]
    fn every_key_can_be_named(key in ".{0,12}") {
        let quoted = format!(".spec['{}']", key.replace('\\', r"\\").replace('\'', r"\'"));
        let path: Path = quoted.parse().unwrap();
        prop_assert_eq!(path.steps().last(), Some(&fieldgate::Step::Named(key)));
        prop_assert_eq!(path.to_string().parse::<Path>(), Ok(path));
    }
}

#[test]
fn numbers_of_gates_and_paths_have_a_bound() {
    let gate = |i: usize, paths: usize| {
        let paths: Vec<String> = (0..paths).map(|p| format!(".spec.f{i}x{p}")).collect();
        json!({ "name": format!("G{i}"), "preRelease": "alpha", "fieldPaths": paths })
    };
    let schema = json!({ "properties": { "spec": { "additionalProperties": { "type": "integer" } } } });
    let errors = |gates: Vec<Value>| {
        let stanza = json!({ "featureGates": gates });
        let declaration = Declaration { stanza: &stanza, at: "spec", schema: &schema, scale: &Value::Null };
        validate(&declaration, None).errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(errors((0..64).map(|i| gate(i, 32)).collect()), [""; 0]);
    let too_many = ["spec.featureGates: Too many: 65: must have at most 64 items"];
    assert_eq!(errors((0..65).map(|i| gate(i, 1)).collect()), too_many);
    let too_many = ["spec.featureGates[0].fieldPaths: Too many: 33: must have at most 32 items"];
    assert_eq!(errors(vec![gate(0, 33)]), too_many);
}

#[test]
fn long_paths_are_refused() {
    let text = ".a".repeat(fieldgate::PATH_BYTES_MAX / 2);
    assert_eq!(text.parse::<Path>().map(|path| path.steps().len()), Ok(fieldgate::PATH_BYTES_MAX / 2));
    let error = format!("{text}.a").parse::<Path>().unwrap_err();
    assert_eq!(error.to_string(), "has 1026 bytes, at most 1024 are allowed");
}
