//! Field managers of several versions of a kind that a webhook converts.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};

use common::{
    board::{APPLY, Board, all, apply, board, convert, define, entry, meta, one, told, world},
    http::{Answer, Http},
};
use serde_json::{Value, json};

/// Managers own fields by the names of the version they wrote through, and lose them when any version changes them.
#[test]
fn managers_of_versions_with_different_names_share_one_object() {
    let (world, webhook) = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, Board::first(true), &webhook).await;
        apply(&mut http, "v1", "one", json!({"color": "red", "replicas": 3})).await;
        let refused = apply(&mut http, "v2", "two", json!({"count": 4})).await;
        assert_eq!(refused.body["message"], "Apply failed with 1 conflict: conflict with \"one\": .spec.replicas");
        let shared = apply(&mut http, "v2", "two", json!({"count": 3})).await;
        assert_eq!((shared.code, &entry(&shared, "two")["fieldsV1"]), (200, &json!({"f:spec": {"f:count": {}}})));
        assert_eq!(entry(&shared, "one")["fieldsV1"], json!({"f:spec": {"f:color": {}, "f:replicas": {}}}));

        let calls = webhook.calls();
        let patched = http.merge(&one("v1"), json!({"spec": {"replicas": 5}})).await;
        assert_eq!(webhook.calls() - calls, 1, "both objects in one call for the version of the other manager");
        assert_eq!(entry(&patched, "one")["fieldsV1"], json!({"f:spec": {"f:color": {}}}));
        assert!(entry(&patched, "two").is_null(), "{}", patched.body);
        let forced = format!("{}?fieldManager=two&force=true", one("v2"));
        let forced = http.send("PATCH", &forced, APPLY, board("v2", json!({"count": 6})).to_string()).await;
        assert_eq!((forced.code, &forced.body["spec"]["count"]), (200, &json!(6)), "{}", forced.body);
        assert!(entry(&forced, "unknown").is_null(), "it has lost its only field, under another name");
    });
}

#[test]
fn fields_that_are_no_longer_applied_are_removed_under_any_name() {
    let (world, webhook) = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, Board::first(true), &webhook).await;
        apply(&mut http, "v1", "one", json!({"color": "red", "size": 1})).await;
        apply(&mut http, "v2", "two", json!({"dims": {"size": 1}, "count": 2})).await;
        let left = apply(&mut http, "v1", "one", json!({"color": "red"})).await;
        assert_eq!(left.body["spec"], json!({"color": "red", "replicas": 2, "size": 1}), "two has it as dims.size");
        let left = apply(&mut http, "v2", "two", json!({"count": 2})).await;
        assert_eq!(left.body["spec"], json!({"color": "red", "count": 2}));
        // The manager applies in another version, without a field that it owned: the field is removed.
        let moved = apply(&mut http, "v1", "two", json!({"size": 4})).await;
        assert_eq!(moved.body["spec"], json!({"color": "red", "size": 4}), "{}", moved.body);
        assert_eq!(entry(&moved, "two")["fieldsV1"], json!({"f:spec": {"f:size": {}}}));
    });
}

/// A write through the stored version needs the webhook only for other managers, and an update succeeds without it.
#[test]
fn the_stored_version_can_be_written_without_the_webhook() {
    let (world, webhook) = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, Board::first(true), &webhook).await;
        apply(&mut http, "v2", "two", json!({"count": 2, "color": "red"})).await;
        webhook.fail_at(1);
        let patched = http.merge(&one("v1"), json!({"spec": {"replicas": 5}})).await;
        assert_eq!((patched.code, &patched.body["spec"]["replicas"]), (200, &json!(5)), "{}", patched.body);
        let fields = json!({"f:spec": {"f:color": {}, "f:count": {}}});
        assert_eq!(entry(&patched, "two")["fieldsV1"], fields, "nothing is known of its names, so nothing is taken");
        webhook.fail_at(1);
        let refused = apply(&mut http, "v1", "one", json!({"replicas": 6})).await;
        assert_eq!(refused.code, 500, "an apply has to know: {}", refused.body);
        webhook.fail_at(0);
        assert_eq!(http.json("GET", &one("v1"), Value::Null).await.body, patched.body);
    });
}

/// A generator of choices that are identical in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Some of the fields that differ between the versions only in their names.
    fn spec(&mut self, null: bool) -> Value {
        let mut spec = json!({});
        for (name, number) in [("color", false), ("tag", false), ("replicas", true)] {
            match self.below(4) {
                0 => {}
                1 if null => spec[name] = Value::Null,
                _ if number => spec[name] = self.below(3).into(),
                _ => spec[name] = self.below(3).to_string().into(),
            }
        }
        spec
    }
}

/// Translates names of the second version to those of the first.
fn translated(text: &str) -> String {
    let words = [
        ("f:count", "f:replicas"),
        ("f:mark", "f:tag"),
        (".spec.count", ".spec.replicas"),
        (".spec.mark", ".spec.tag"),
    ];
    let names = [
        ("\"count\"", "\"replicas\""),
        ("\"mark\"", "\"tag\""),
        (" using stable.example.com/v2", ""),
        (" using stable.example.com/v1", ""),
    ];
    words.into_iter().chain(names).fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The result of a write in names of one version: code, spec, generation, warnings, owned fields, conflicts.
fn outcome(answer: &Answer) -> Value {
    let mut claims = BTreeMap::<String, BTreeSet<String>>::new();
    for entry in meta(answer, "managedFields").as_array().into_iter().flatten() {
        let fields = translated(&entry["fieldsV1"].to_string());
        let fields: Value = serde_json::from_str(&fields).unwrap();
        let own = claims.entry(format!("{} {}", entry["manager"], entry["operation"])).or_default();
        own.extend(fields["f:spec"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
    }
    let mut conflicts: Vec<String> = answer.body["details"]["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| translated(&cause.to_string()))
        .collect();
    conflicts.sort();
    let spec: Value = serde_json::from_str(&translated(&answer.body["spec"].to_string())).unwrap();
    json!({"code": answer.code, "spec": spec, "generation": meta(answer, "generation"), "warnings": told(answer),
           "claims": claims, "conflicts": conflicts})
}

/// Equal writes to three objects, through the first version, the second, and alternately, have equal results.
#[test]
fn the_version_of_a_write_makes_no_difference() {
    let (world, webhook) = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        define(&mut http, Board::first(true), &webhook).await;
        let mut dice = Dice(7);
        let (mut held, mut refused) = (0, 0);
        for step in 0..150 {
            if dice.below(8) == 0 {
                define(&mut http, Board::first(dice.below(2) == 0), &webhook).await;
            }
            let (apply, manager, force) = (dice.below(2) == 0, dice.below(2), dice.below(3) == 0);
            let (spec, other) = (dice.spec(!apply), ["v1", "v2"][dice.below(2) as usize]);
            let mut outcomes = Vec::new();
            for (name, version) in [("x", "v1"), ("y", "v2"), ("z", other)] {
                let mut object = json!({"apiVersion": "stable.example.com/v1", "kind": "Board", "metadata": {"name": name}, "spec": spec});
                if version == "v2" {
                    object = convert(object, "stable.example.com/v2");
                }
                let path = format!("{}/{name}?fieldManager=m{manager}", all(version));
                let answer = match (apply || step == 0, force || step == 0) {
                    (true, true) => http.send("PATCH", &format!("{path}&force=true"), APPLY, object.to_string()).await,
                    (true, false) => http.send("PATCH", &path, APPLY, object.to_string()).await,
                    (false, _) => http.merge(&path, json!({"spec": object["spec"]})).await,
                };
                outcomes.push(outcome(&answer));
            }
            held += usize::from(outcomes[0]["warnings"] != json!([]));
            refused += usize::from(outcomes[0]["code"] == 409);
            assert_eq!(outcomes[0], outcomes[1], "step {step}: {spec} through v2, apply {apply} force {force} by m{manager}");
            assert_eq!(outcomes[0], outcomes[2], "step {step}: {spec} through {other}, apply {apply} force {force} by m{manager}");
        }
        assert!(held > 10 && refused > 10, "of all writes {held} were held back and {refused} refused");
    });
}
