//! The engine against the plainest reading of its rules, for schemas, gates and objects of any make.

use std::collections::BTreeSet;

use fieldgate::{Gates, Gating, Kind, Part, Write};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    any_schema::{Case, case, with_defaults},
    model::{self, Told},
};

fn apply(case: &Case, stored: Option<&Value>, new: &Value) -> Value {
    let mut result = new.clone();
    let changed = Gating::new(&case.gates(), &case.schema).apply(stored, &mut result);
    assert_eq!(changed, result != *new);
    result
}

/// What was said, by gate: of two paths of one gate that name one field either may be told.
fn told(case: &Case, write: &Write<'_>, new: &Value) -> BTreeSet<(String, Told)> {
    let warnings = Gating::new(&case.gates(), &case.schema).warnings(write, new);
    let kind = |kind: &Kind| match kind {
        Kind::Dropped => Told::Dropped,
        Kind::NotUpdated => Told::NotUpdated,
        Kind::NotRemoved => Told::NotRemoved,
        Kind::RemovedWithParent => Told::RemovedWithParent,
        Kind::Deprecated(_) => Told::Deprecated,
    };
    warnings.iter().map(|warning| (warning.gate.clone(), kind(&warning.kind))).collect()
}

fn reversed(gates: &Gates) -> Gates {
    let mut gates = gates.clone();
    gates.gates.reverse();
    gates.gates.iter_mut().for_each(|gate| gate.field_paths.reverse());
    gates
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_write_is_one_step(case in case(), create: bool) {
        let (gates, stored) = (case.gates(), (!create).then_some(&case.stored));
        let result = apply(&case, stored, &case.new);
        prop_assert_eq!(&result, &model::write(&gates, &case.schema, stored, &case.new));
        prop_assert_eq!(&apply(&case, stored, &result), &result, "twice is once");
        // What is not frozen is as it was sent.
        let cut = |object: &Value| apply(&case, None, object);
        prop_assert_eq!(cut(&result), cut(&case.new));
        let mut other = case.new.clone();
        Gating::new(&reversed(&gates), &case.schema).apply(stored, &mut other);
        prop_assert_eq!(&other, &result, "in any order of gates");
    }

    /// Frozen fields of one object over another: those it has, and nothing else.
    #[test]
    fn wishes_are_laid_over(case in case()) {
        let (gates, mut laid) = (case.gates(), case.new.clone());
        Gating::new(&gates, &case.schema).lay_over(&case.stored, &mut laid);
        for place in model::frozen_places(&gates, &case.schema, &case.new) {
            let [laid, from, before] = [&laid, &case.stored, &case.new].map(|object| model::get(&case.schema, object, &place));
            prop_assert_eq!(laid, from.or(before));
        }
        prop_assert_eq!(apply(&case, None, &laid), apply(&case, None, &case.new));
    }

    #[test]
    fn warnings_are_about_what_came_of_the_wish(case in case(), create: bool) {
        let gates = case.gates();
        let stored = (!create).then_some(&case.stored);
        let write = Write { stored, read: stored, sent: None, part: Part::Whole };
        prop_assert_eq!(told(&case, &write, &case.new), model::told(&gates, &case.schema, stored, &case.new));
        let written = Gating::new(&gates, &case.schema).write(&write, case.new.clone());
        let again = Gating::new(&reversed(&gates), &case.schema).write(&write, case.new.clone());
        let said = |written: &fieldgate::Written| written.warnings.iter().map(|one| (one.gate.clone(), one.kind.clone())).collect::<BTreeSet<_>>();
        prop_assert_eq!(said(&written), said(&again));
    }

    /// What defaults bring is what they would bring without gates, but for frozen places.
    #[test]
    fn defaults_bring_all_but_what_is_frozen((case, schema) in case().prop_flat_map(|case| {
        let schema = with_defaults(case.schema.clone());
        (Just(case), schema)
    })) {
        let gating = Gating::new(&case.gates(), &case.schema);
        let mut stripped = schema.clone();
        gating.strip_defaults(&mut stripped);
        let fill = |schema: &Value| {
            let mut filled = apply(&case, None, &case.new);
            model::fill(schema, &mut filled);
            filled
        };
        let filled = fill(&stripped);
        prop_assert_eq!(&apply(&case, None, &filled), &filled, "nothing frozen is brought");
        prop_assert_eq!(&filled, &apply(&case, None, &fill(&schema)), "nothing else is kept back");
    }

    #[test]
    fn claims_are_frozen_like_values(case in case()) {
        let gates = case.gates();
        let gating = Gating::new(&gates, &case.schema);
        let value = apply(&case, Some(&case.stored), &case.new);
        let entry = |manager: &str, fields: Value| json!({ "manager": manager, "operation": "Apply", "fieldsV1": fields });
        let [before, after] = [&case.stored, &case.new].map(|object| model::claims_of_object(&case.schema, object));
        let entries = [entry("owner", after.clone()), entry("other", after.clone())];
        let entries = gating.freeze_managed_fields(&[entry("owner", before)], &entries, &value).unwrap();
        let claims = |manager: &str| {
            let entry = entries.iter().find(|entry| entry["manager"] == manager);
            entry.map_or_else(|| json!({}), |entry| entry["fieldsV1"].clone())
        };
        let outside = gating.unfrozen(&after).unwrap();
        prop_assert_eq!(&claims("other"), &outside);
        prop_assert_eq!(gating.unfrozen(&claims("owner")).unwrap(), outside);
        for place in model::frozen_places(&gates, &case.schema, &value) {
            let there = model::get(&case.schema, &value, &place).map(|value| model::claims(model::schema_at(&case.schema, &place), value));
            prop_assert_eq!(model::claims_at(&claims("owner"), &place, &case.schema), there);
        }
    }
}
