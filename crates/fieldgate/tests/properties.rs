//! What holds for every write, whatever the gates and objects.

use std::borrow::Cow;

use fieldgate::{Gates, Gating, Part, Write};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    generate::{gates, object, schema, stanza},
    model,
};

fn apply(gates: &Gates, stored: Option<&Value>, new: &Value) -> Value {
    let mut result = new.clone();
    let changed = Gating::new(gates, &schema()).apply(stored, &mut result);
    assert_eq!(changed, result != *new);
    result
}

/// One look at every item: whoever stops applying a frozen field of each of many items must not hold up the server.
#[test]
fn claims_on_the_items_of_a_long_list() {
    let gates =
        json!({ "featureGates": [{ "name": "G", "preRelease": "alpha", "fieldPaths": [".spec.ports[*].host"] }] });
    let gating = Gating::new(&self::gates(&gates), &schema());
    let items: Vec<Value> = (0..20_000).map(|port| json!({ "port": port, "host": 1 })).collect();
    let value = json!({ "spec": { "ports": items } });
    let before = model::claims_of_object(&schema(), &value);
    let entry = |fields: &Value| json!({ "manager": "m", "operation": "Apply", "fieldsV1": fields });
    let after = [entry(&gating.unfrozen(&before).unwrap())];
    let kept = gating.freeze_managed_fields(&[entry(&before)], &after, &value).unwrap();
    assert_eq!(kept[0]["fieldsV1"], before);
}

proptest! {
    #[test]
    fn a_write_is_what_the_model_says(stanza in stanza(), stored in prop::option::of(object()), new in object()) {
        let gates = gates(&stanza);
        prop_assert_eq!(apply(&gates, stored.as_ref(), &new), model::write(&gates, &schema(), stored.as_ref(), &new));
    }

    #[test]
    fn the_order_of_gates_does_not_matter(
        (stanza, shuffled) in stanza().prop_flat_map(|stanza| {
            let gates = stanza["featureGates"].as_array().unwrap().clone();
            let shuffled = Just(gates).prop_shuffle().prop_map(|gates| json!({ "featureGates": gates }));
            (Just(stanza), shuffled)
        }),
        stored in object(),
        new in object(),
    ) {
        let write = |stanza: &Value| {
            let write = Write { stored: Some(&stored), read: Some(&stored), sent: None, part: Part::Whole };
            Gating::new(&gates(stanza), &schema()).write(&write, new.clone())
        };
        prop_assert_eq!(write(&stanza), write(&shuffled));
    }

    #[test]
    fn twice_is_once(stanza in stanza(), stored in prop::option::of(object()), new in object()) {
        let gates = gates(&stanza);
        let once = apply(&gates, stored.as_ref(), &new);
        prop_assert_eq!(apply(&gates, stored.as_ref(), &once), once);
    }

    /// What is left when the frozen places are cut out of it is what was sent, and nothing but what was sent.
    #[test]
    fn what_is_not_gated_is_not_touched(stanza in stanza(), stored in prop::option::of(object()), new in object()) {
        let gates = gates(&stanza);
        let result = apply(&gates, stored.as_ref(), &new);
        let cut = |object: &Value| model::write(&gates, &schema(), None, object);
        prop_assert_eq!(cut(&result), cut(&new));
    }

    #[test]
    fn a_frozen_place_has_what_is_stored_or_nothing(stanza in stanza(), stored in object(), new in object()) {
        let (gates, schema) = (gates(&stanza), schema());
        let result = apply(&gates, Some(&stored), &new);
        for place in model::frozen_places(&gates, &schema, &result) {
            prop_assert_eq!(model::get(&schema, &result, &place), model::get(&schema, &stored, &place));
        }
    }

    /// A caller that sends back what it read is told nothing, and nothing changes.
    #[test]
    fn sending_back_what_is_stored_is_silent(stanza in stanza(), stored in object()) {
        let write = Write { stored: Some(&stored), read: Some(&stored), sent: None, part: Part::Whole };
        let written = Gating::new(&gates(&stanza), &schema()).write(&write, stored.clone());
        prop_assert_eq!(&written.value, &stored);
        prop_assert_eq!(written.warnings, []);
    }

    /// Whoever is told nothing of suppression got what it sent.
    #[test]
    fn no_value_is_kept_back_in_silence(stanza in stanza(), stored in prop::option::of(object()), new in object()) {
        let write = Write { stored: stored.as_ref(), read: stored.as_ref(), sent: None, part: Part::Whole };
        let written = Gating::new(&gates(&stanza), &schema()).write(&write, new.clone());
        prop_assert_eq!(written.changed, written.value != new);
        prop_assert!(!written.changed || written.warnings.iter().any(|warning| warning.kind.is_suppression()));
    }

    /// What the engine looks at of an object is all that it needs of it.
    #[test]
    fn an_excerpt_will_do(
        stanza in stanza(),
        stored in prop::option::of(object()),
        read in prop::option::of(object()),
        sent in object(),
        new in prop::option::of(object()),
        part in 0..3usize,
    ) {
        let gating = Gating::new(&gates(&stanza), &schema());
        let status = || ".status".parse().unwrap();
        let part = [Part::Whole, Part::Only(status()), Part::AllBut(status())][part].clone();
        let new = new.unwrap_or_else(|| sent.clone());
        let whole = Write { stored: stored.as_ref(), read: read.as_ref(), sent: Some(&sent), part: part.clone() };
        let excerpt = |object: &Option<Value>| object.as_ref().map(|object| gating.excerpt(object));
        let (less_stored, less_read, less_sent) = (excerpt(&stored), excerpt(&read), gating.excerpt(&sent));
        let less = Write { stored: less_stored.as_ref(), read: less_read.as_ref(), sent: Some(&less_sent), part };
        prop_assert_eq!(gating.write(&less, new.clone()), gating.write(&whole, new));
        // Nothing is left out twice.
        prop_assert_eq!(gating.excerpt(&less_sent), less_sent);
    }

    /// What the stripped schema could bring in by default is never something that the write step takes out again.
    #[test]
    fn no_default_survives_at_a_frozen_place(stanza in stanza(), default in object()) {
        let gates = gates(&stanza);
        let mut with_default = schema();
        with_default["default"] = default;
        Gating::new(&gates, &schema()).strip_defaults(&mut with_default);
        let left = &with_default["default"];
        prop_assert_eq!(&apply(&gates, None, left), left);
    }

    /// Whoever sends back what is there moves no claim, and its entry is as the write has it.
    #[test]
    fn claims_that_nobody_moves_stay(stanza in stanza(), stored in object(), extra in object()) {
        let gating = Gating::new(&gates(&stanza), &schema());
        // Where no gate is off there is nothing to keep.
        prop_assume!(!gating.is_idle());
        let fields = model::claims_of_object(&schema(), &stored);
        let entry = |time: &str| json!({ "manager": "m", "operation": "Apply", "fieldsV1": fields, "time": time });
        let after = [entry("new")];
        let entries = gating.freeze_managed_fields(&[entry("old")], &after, &stored).unwrap();
        prop_assert_eq!(&entries[..], &after[..]);
        prop_assert!(matches!(entries, Cow::Borrowed(_)));
        // Claims on what is not there any more go.
        let entries = gating.freeze_managed_fields(&[entry("old")], &after, &extra).unwrap();
        let left = entries.first().map_or_else(|| json!({}), |entry| entry["fieldsV1"].clone());
        prop_assert_eq!(gating.unfrozen(&left).unwrap(), gating.unfrozen(&fields).unwrap());
    }

    /// Outside frozen fields claims are what the write made of them; inside they are as before, if the field is there.
    #[test]
    fn claims_are_frozen_like_values(stanza in stanza(), stored in object(), new in object()) {
        let (gates, schema) = (gates(&stanza), schema());
        let gating = Gating::new(&gates, &schema);
        let value = apply(&gates, Some(&stored), &new);
        let entry = |manager: &str, fields: Value| json!({ "manager": manager, "operation": "Apply", "fieldsV1": fields });
        let [before, after] = [&stored, &new].map(|object| model::claims_of_object(&schema, object));
        let entries = [entry("owner", after.clone()), entry("other", after.clone())];
        let entries = gating.freeze_managed_fields(&[entry("owner", before)], &entries, &value).unwrap();
        let claims = |manager: &str| {
            let entry = entries.iter().find(|entry| entry["manager"] == manager);
            entry.map_or_else(|| json!({}), |entry| entry["fieldsV1"].clone())
        };
        let outside = gating.unfrozen(&after).unwrap();
        prop_assert_eq!(&claims("other"), &outside);
        prop_assert_eq!(gating.unfrozen(&claims("owner")).unwrap(), outside);
        // What the owner had of frozen fields is what the value has of them.
        for place in model::frozen_places(&gates, &schema, &value) {
            let there = model::get(&schema, &value, &place).map(|value| model::claims(model::schema_at(&schema, &place), value));
            prop_assert_eq!(model::claims_at(&claims("owner"), &place, &schema), there);
        }
    }
}
