//! The real kubectl on validation rules, on objects that have become invalid, and on field selectors.

use crate::common;

use common::{World, data};

fn shirt(name: &str, color: &str, size: u32) -> String {
    format!(
        "apiVersion: stable.example.com/v1\nkind: Shirt\nmetadata: {{name: {name}}}\nspec: {{color: {color}, size: {size}, owner: ann}}\n"
    )
}

fn world_with_shirts() -> World {
    let world = World::start();
    let said = world.kubectl(&["apply", "-f", &data("shirts.yaml")]);
    assert_eq!(said.stderr, "", "nothing is left out that would need a warning");
    said.ok();
    world.kubectl_wait(&["--for=condition=Established", "crd/shirts.stable.example.com"]).ok();
    for (name, color, size) in [("a", "blue", 3), ("b", "pink", 2), ("c", "blue", 9)] {
        world.kubectl_with(&["create", "-f", "-"], &shirt(name, color, size)).ok();
    }
    world
}

#[test]
fn rules_are_evaluated_and_their_messages_shown() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world_with_shirts();
    let refused = world.kubectl_with(&["create", "-f", "-"], &shirt("d", "pink", 7)).error();
    assert_eq!(refused, "The Shirt \"d\" is invalid: spec.color: Invalid value: pink is for small ones");
    let refused = world.kubectl(&["patch", "shirt", "c", "--type=merge", "-p", r#"{"spec":{"size":4}}"#]).error();
    assert_eq!(refused, "The Shirt \"c\" is invalid: spec.size: Invalid value: 4: cannot shrink from 9 to 4");
    let refused = world.kubectl(&["patch", "shirt", "c", "--type=merge", "-p", r#"{"spec":{"owner":"Ann"}}"#]).error();
    assert!(refused.contains("failed rule: self.matches('^[a-z]+$')"), "{refused}");
    // Rules are not evaluated for values of the wrong type.
    let refused = world.kubectl(&["patch", "shirt", "c", "--type=merge", "-p", r#"{"spec":{"size":"x"}}"#]).error();
    assert!(refused.contains("spec.size: Invalid value: \"string\""), "{refused}");
    assert!(refused.contains("some validation rules were not checked because the object was invalid"), "{refused}");
    // A definition whose rule cannot be compiled is refused with the position.
    let patch = r#"[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule","value":"self.colour == ''"}]"#;
    let refused = world.kubectl(&["patch", "crd", "shirts.stable.example.com", "--type=json", "-p", patch]).error();
    assert!(
        refused.contains("spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"),
        "{refused}"
    );
    assert!(refused.contains("undefined field 'colour'"), "{refused}");
}

/// A schema that has become stricter does not block changes of other fields in existing objects.
#[test]
fn unchanged_invalid_fields_are_ignored() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world_with_shirts();
    let patch = r#"[
        {"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color/enum","value":["red"]},
        {"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/owner/x-kubernetes-validations/0/rule","value":"self == 'bob'"}]"#;
    world.kubectl(&["patch", "crd", "shirts.stable.example.com", "--type=json", "-p", patch]).ok();
    let said = world.kubectl(&["patch", "shirt", "a", "--type=merge", "-p", r#"{"spec":{"size":4}}"#]);
    assert!(said.code == Some(0), "{}", said.stderr);
    assert_eq!(said.stderr, "Warning: spec.owner: Invalid value: \"ann\": failed rule: self == 'bob'\n");
    let refused =
        world.kubectl(&["patch", "shirt", "a", "--type=merge", "-p", r#"{"spec":{"color":"green"}}"#]).error();
    assert!(refused.contains("spec.color: Unsupported value: \"green\": supported values: \"red\""), "{refused}");
    let refused = world.kubectl(&["patch", "shirt", "a", "--type=merge", "-p", r#"{"spec":{"owner":"eve"}}"#]).error();
    assert!(refused.contains("failed rule: self == 'bob'"), "{refused}");
}

#[test]
fn objects_are_selected_by_their_fields() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world_with_shirts();
    let names = |selector: &str| world.kubectl(&["get", "shirts", "-o", "name", "--field-selector", selector]).ok();
    assert_eq!(names("spec.color=blue"), "shirt.stable.example.com/a\nshirt.stable.example.com/c\n");
    assert_eq!(names("spec.color=blue,spec.size!=9"), "shirt.stable.example.com/a\n");
    assert_eq!(names("spec.color=blue,metadata.name=c"), "shirt.stable.example.com/c\n");
    let refused = world.kubectl(&["get", "shirts", "--field-selector", "spec.owner=ann"]).error();
    assert!(refused.contains("field label not supported: spec.owner"), "{refused}");
    let spec = world.kubectl(&["get", "--raw", "/openapi/v3/apis/stable.example.com/v1"]).ok();
    assert!(
        spec.contains(r#""x-kubernetes-selectable-fields":[{"fieldPath":"spec.color"},{"fieldPath":"spec.size"}]"#)
    );
    world.kubectl(&["delete", "shirts", "--field-selector", "spec.color=blue"]).ok();
    assert_eq!(world.kubectl(&["get", "shirts", "-o", "name"]).ok(), "shirt.stable.example.com/b\n");
}
