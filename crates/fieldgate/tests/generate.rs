//! Random gates and objects for the schema of the scripts, and JSON of any shape.

use fieldgate::{Gates, validate};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub(crate) fn schema() -> Value {
    serde_json::from_str(include_str!("../testdata/schema.json")).expect("schema.json is JSON")
}

const PATHS: [&str; 20] = [
    ".spec",
    ".spec.replicas",
    ".spec.other",
    ".spec.foo",
    ".spec.foo.qux",
    ".spec.foo.baz",
    ".spec.foobar",
    ".spec.nullable.in",
    ".spec.limits",
    ".spec.limits[*].soft",
    ".spec.limits['cpu']",
    ".spec.limits.cpu.soft",
    ".spec.limits.mem.hard",
    ".spec.ports",
    ".spec.ports[*].host",
    ".spec.ports[*].label",
    ".spec.zones['a'].racks",
    ".spec.zones[*].racks[*].power",
    ".status",
    ".status.shard",
];

/// A declaration that validation accepts, in any order of gates.
pub(crate) fn stanza() -> impl Strategy<Value = Value> {
    let gate = (prop::sample::subsequence(PATHS.to_vec(), 1..4), 0..3usize, any::<bool>());
    prop::collection::vec(gate, 1..6).prop_map(|gates| {
        let mut stanza = json!({ "featureGates": [] });
        for (i, (paths, stage, on)) in gates.into_iter().enumerate() {
            let stage = ["alpha", "beta", "deprecated"][stage];
            let mut gate = json!({ "name": format!("G{i}"), "preRelease": stage, "enabled": on, "fieldPaths": paths });
            if stage == "deprecated" {
                gate["default"] = false.into();
            }
            let mut longer = stanza.clone();
            longer["featureGates"].as_array_mut().expect("a list").push(gate);
            // A gate that clashes with the ones before is left out.
            if is_sound(&longer) {
                stanza = longer;
            }
        }
        stanza
    })
}

fn is_sound(stanza: &Value) -> bool {
    let (schema, scale) = (schema(), Value::Null);
    let declaration = fieldgate::Declaration { stanza, at: "gates", schema: &schema, scale: &scale };
    validate(&declaration, None).errors.is_empty()
}

pub(crate) fn gates(stanza: &Value) -> Gates {
    Gates::parse(stanza, "gates").expect("a sound declaration")
}

/// An object that mostly follows the schema: small values, so that two of them often agree.
pub(crate) fn object() -> impl Strategy<Value = Value> {
    let spec = fields(vec![
        ("image", leaf()),
        ("replicas", leaf()),
        ("other", leaf()),
        ("foobar", leaf()),
        ("foo", fields(vec![("baz", leaf()), ("qux", leaf())])),
        ("nullable", fields(vec![("in", leaf())])),
        ("limits", map(fields(vec![("soft", leaf()), ("hard", leaf())]))),
        ("ports", list(port(), |item| format!("{}{}", item["port"], item.get("protocol").unwrap_or(&json!("TCP"))))),
        ("zones", map(fields(vec![("racks", list(rack(), |item| item["name"].to_string()))]))),
    ]);
    fields(vec![("spec", spec), ("status", fields(vec![("phase", leaf()), ("shard", leaf())]))])
}

fn leaf() -> BoxedStrategy<Value> {
    prop_oneof![8 => (0..3).prop_map(Value::from), 1 => Just(json!("text")), 1 => Just(Value::Null)].boxed()
}

/// An object with some of the fields; now and then something else.
fn fields(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let some: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| prop::option::weighted(0.7, value).prop_map(move |v| v.map(|v| (name, v))))
        .collect();
    let object = some.prop_map(|fields| {
        Value::Object(fields.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)).collect())
    });
    prop_oneof![20 => object, 1 => leaf()].boxed()
}

fn map(value: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let key = prop::sample::select(vec!["cpu", "mem", "a", "b.c"]).prop_map(str::to_owned);
    prop::collection::btree_map(key, value, 0..4).prop_map(|map| Value::Object(Map::from_iter(map))).boxed()
}

/// A list in any order, without two items of one key.
fn list(item: BoxedStrategy<Value>, key: impl Fn(&Value) -> String + 'static) -> BoxedStrategy<Value> {
    prop::collection::vec(item, 0..4)
        .prop_map(move |mut items| {
            let mut seen = std::collections::BTreeSet::new();
            items.retain(|item| seen.insert(key(item)));
            Value::Array(items)
        })
        .boxed()
}

fn port() -> BoxedStrategy<Value> {
    let key = (0..3i64, prop::option::of(prop::sample::select(vec!["TCP", "UDP"])));
    let rest = (prop::option::of(0..3i64), prop::option::of(0..3i64));
    (key, rest)
        .prop_map(|((port, protocol), (host, label))| {
            let mut item = json!({ "port": port });
            set(&mut item, "protocol", protocol.map(Value::from));
            set(&mut item, "host", host.map(Value::from));
            set(&mut item, "label", label.map(Value::from));
            item
        })
        .boxed()
}

fn rack() -> BoxedStrategy<Value> {
    (0..3i64, prop::option::of(0..3i64))
        .prop_map(|(name, power)| {
            let mut item = json!({ "name": name });
            set(&mut item, "power", power.map(Value::from));
            item
        })
        .boxed()
}

fn set(item: &mut Value, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        item[name] = value;
    }
}

/// JSON of any shape, made of words that schemas, gates and sets of fields are made of.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let words = vec![
        "spec",
        "properties",
        "items",
        "additionalProperties",
        "default",
        "required",
        "oneOf",
        "not",
        "minProperties",
        "featureGates",
        "component",
        "name",
        "preRelease",
        "alpha",
        "deprecated",
        "fieldPaths",
        ".spec",
        ".spec.foo",
        ".spec[*].foo",
        ".items[*].name",
        "foo",
        "x-kubernetes-list-type",
        "map",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-validations",
        "rule",
        "self.foo",
        "f:spec",
        "f:foo",
        ".",
        "k:{\"name\":1}",
        "k:",
        "v:1",
        "i:0",
        "fieldsV1",
        "manager",
        "versions",
        "storage",
        "schema",
        "openAPIV3Schema",
        "customFeatureGates",
        "conversion",
        "strategy",
        "Webhook",
        "enabled",
        "metadata",
        "",
    ];
    let word = prop::sample::select(words).prop_map(str::to_owned);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            3 => prop::collection::btree_map(word.clone(), inner, 0..6).prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}
