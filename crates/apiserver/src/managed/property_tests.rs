//! What holds for every history of an object, whoever writes.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{
    Alike, ApplyError, Managers, Node, Reset, Types, Writer, apply::Applied, own::fields, set::Set, writer::bare,
};

const VERSION: &str = "example.com/v1";

fn types() -> Types {
    let keyed = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items":
        {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string"}, "b": {"type": "string"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "string"}}, "keyed": keyed,
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}}});
    Types::from([(VERSION.to_owned(), Node::of_object(&schema))])
}

fn word() -> impl Strategy<Value = Value> {
    prop_oneof![Just("x"), Just("y"), Just("z")].prop_map(Value::from)
}

fn some(value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Option<Value>> {
    prop::option::of(value).boxed()
}

fn map() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[abc]", word(), 0..3).prop_map(|map| Value::Object(map.into_iter().collect()))
}

fn words() -> impl Strategy<Value = Value> {
    prop::collection::btree_set("[pqrs]", 0..4).prop_shuffle_words()
}

trait Shuffled: Strategy<Value = std::collections::BTreeSet<String>> + Sized + 'static {
    fn prop_shuffle_words(self) -> BoxedStrategy<Value> {
        let list = self.prop_map(|set| set.into_iter().map(Value::from).collect::<Vec<_>>()).prop_shuffle();
        list.prop_map(Value::from).boxed()
    }
}

impl<S: Strategy<Value = std::collections::BTreeSet<String>> + 'static> Shuffled for S {}

fn keyed() -> impl Strategy<Value = Value> {
    let item = |(key, value): (String, Option<Value>)| {
        let mut item = json!({ "k": key });
        if let Some(value) = value {
            item["v"] = value;
        }
        item
    };
    let items = prop::collection::btree_map("[kl]", prop::option::of(word()), 0..3);
    items.prop_map(move |items| items.into_iter().map(item).collect())
}

fn config() -> impl Strategy<Value = Value> {
    let names = ["a", "b", "map", "set", "list", "keyed", "free"];
    let parts = [some(word()), some(word()), some(map()), some(words()), some(words()), some(keyed()), some(map())];
    parts.prop_map(move |parts| {
        let pairs = names.iter().zip(parts).filter_map(|(name, part)| Some(((*name).to_owned(), part?)));
        let spec: Map<String, Value> = pairs.collect();
        json!({"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
    })
}

#[derive(Clone, Debug)]
struct Write {
    manager: &'static str,
    config: Value,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Apply,
    Force,
    Update,
}

fn write() -> impl Strategy<Value = Write> {
    let how = prop_oneof![Just(How::Apply), Just(How::Force), Just(How::Update)];
    (prop_oneof![Just("one"), Just("two"), Just("three")], config(), how).prop_map(|(manager, config, how)| Write {
        manager,
        config,
        how,
    })
}

fn writer<'a>(types: &'a Types, manager: &'a str) -> Writer<'a> {
    let reset = Reset::Except(&[]);
    Writer {
        types,
        api_version: VERSION,
        subresource: "",
        manager,
        reset,
        counts: None,
        gating: None,
        elsewhere: None,
        views: &Alike,
        zero: &Value::Null,
        now: "2026-01-01T00:00:00Z",
    }
}

fn live(applied: Applied) -> Value {
    let mut object = applied.object;
    object["metadata"]["managedFields"] = applied.managers.to_json().into();
    object
}

fn apply(types: &Types, live: Option<&Value>, write: &Write, force: bool) -> Result<Applied, ApplyError> {
    let managers = live.map(Managers::of).unwrap_or_default();
    writer(types, write.manager).apply(live, &write.config, managers, force)
}

/// The object after all writes; those that are refused change nothing.
fn history(types: &Types, writes: &[Write]) -> Option<Value> {
    writes.iter().fold(None, |before, write| match write.how {
        How::Update => {
            let managers = before.as_ref().map(Managers::of).unwrap_or_default();
            let managers = writer(types, write.manager).update(before.as_ref(), &write.config, managers).capped();
            Some(live(Applied { object: write.config.clone(), wanted: None, managers }))
        }
        how => apply(types, before.as_ref(), write, how == How::Force).map(live).ok().or(before),
    })
}

/// Whose claims there are, without times.
fn claims(object: &Value) -> Vec<(Value, Set)> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .map(|entry| (json!([entry["manager"], entry["operation"]]), Set::parse(&entry["fieldsV1"]).unwrap()))
        .collect()
}

proptest! {
    #[test]
    fn applied_twice_is_applied_once(writes in prop::collection::vec(write(), 0..5), last in write()) {
        let types = types();
        let before = history(&types, &writes);
        // An object that nobody has a claim on is taken for one that nobody kept track of, as in Kubernetes.
        if let Ok(once) = apply(&types, before.as_ref(), &last, last.how == How::Force) && !once.managers.is_empty() {
            let once = live(once);
            let twice = live(apply(&types, Some(&once), &last, false).unwrap());
            prop_assert_eq!(once, twice);
        }
    }

    /// Whoever applies a part of what is there gets no conflict and changes nothing of the object, if they had nothing before.
    #[test]
    fn what_is_there_can_be_shared(writes in prop::collection::vec(write(), 1..5)) {
        let types = types();
        let Some(before) = history(&types, &writes) else { return Ok(()) };
        let config = bare(&before);
        let shared = apply(&types, Some(&before), &Write { manager: "new", config, how: How::Apply }, false).unwrap();
        prop_assert_eq!(shared.object, bare(&before));
    }

    #[test]
    fn a_forced_apply_owns_what_it_says_and_others_lose_what_it_changed(
        writes in prop::collection::vec(write(), 1..5), last in write(),
    ) {
        let types = types();
        let before = history(&types, &writes);
        let after = live(apply(&types, before.as_ref(), &last, true).unwrap());
        let said = fields(&types[VERSION], &last.config);
        let own = claims(&after).into_iter().find(|(who, _)| *who == json!([last.manager, "Apply"]));
        let own = own.map(|(_, set)| set).unwrap_or_default();
        prop_assert_eq!(&own, &super::writer::stripped(&said));
        if let Some(before) = before {
            let changed = super::compare::compare(&types[VERSION], &bare(&before), &bare(&after));
            for (who, set) in claims(&after).iter().filter(|(who, _)| *who != json!([last.manager, "Apply"])) {
                let lost = changed.modified.clone().union(&changed.added).union(&changed.removed);
                prop_assert!(set.intersection(&lost).is_empty(), "{} still has {:?}", who, set.intersection(&lost));
            }
        }
    }

    /// Laid over the result once more, a configuration has nothing to add.
    #[test]
    fn what_is_applied_is_there(writes in prop::collection::vec(write(), 0..4), last in write()) {
        let types = types();
        let before = history(&types, &writes);
        let after = apply(&types, before.as_ref(), &last, true).unwrap().object;
        let again = super::merge::merge(&types[VERSION], &after, &last.config).unwrap();
        prop_assert_eq!(again, after);
    }

    #[test]
    fn sets_survive_printing(config in config()) {
        let set = fields(&types()[VERSION], &config);
        prop_assert_eq!(Set::parse(&set.to_json()).unwrap(), set);
    }

    /// Nothing that can be stored makes the server panic.
    #[test]
    fn any_entries_are_taken(keys in prop::collection::vec("([fkviz.]:?.{0,4}|f:spec|k:\\{\"k\":1\\}|v:1|i:0)", 0..4), config in config()) {
        let fields = keys.iter().rev().fold(json!({}), |below, key| json!({key.as_str(): below}));
        let entry = json!({"manager": "m", "operation": "Apply", "apiVersion": VERSION, "fieldsType": "FieldsV1", "fieldsV1": fields});
        let mut object = config.clone();
        object["metadata"]["managedFields"] = json!([entry]);
        let types = types();
        let write = Write { manager: "m", config, how: How::Force };
        let _ = apply(&types, Some(&object), &write, true);
        writer(&types, "n").update(Some(&object), &write.config, Managers::of(&object));
    }
}
