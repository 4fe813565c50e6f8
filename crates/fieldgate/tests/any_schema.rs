//! Random schemas, with gates on paths that they have and objects that mostly follow them.

use fieldgate::{Gates, validate};
use proptest::{collection::btree_map, prelude::*, sample::select};
use serde_json::{Map, Value, json};

/// A schema, gates for it that validation accepts, and objects.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub schema: Value,
    pub stanza: Value,
    pub stored: Value,
    pub new: Value,
}

impl Case {
    pub(crate) fn gates(&self) -> Gates {
        Gates::parse(&self.stanza, "gates").expect("a sound declaration")
    }
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    object_of(node(3)).prop_flat_map(|schema| {
        let (gates, stored, new) = (stanza(&schema), value(&schema), value(&schema));
        (Just(schema), gates, stored, new).prop_map(|(schema, stanza, stored, new)| Case {
            schema,
            stanza,
            stored,
            new,
        })
    })
}

/// A schema of objects, with defaults here and there.
pub(crate) fn with_defaults(schema: Value) -> BoxedStrategy<Value> {
    let own = prop::option::weighted(0.3, value(&schema));
    let below = ["properties", "additionalProperties", "items"].map(|keyword| defaults_below(&schema, keyword));
    let [fields, entries, items] = below;
    (Just(schema), own, fields, entries, items)
        .prop_map(|(mut schema, own, fields, entries, items)| {
            let set = [("default", own), ("properties", fields), ("additionalProperties", entries), ("items", items)];
            for (keyword, value) in set.into_iter().filter_map(|(keyword, value)| Some((keyword, value?))) {
                schema[keyword] = value;
            }
            schema
        })
        .boxed()
}

fn defaults_below(schema: &Value, keyword: &str) -> BoxedStrategy<Option<Value>> {
    match (schema.get(keyword), keyword) {
        (Some(Value::Object(fields)), "properties") => {
            // The keys of lists have the defaults that they have.
            let field = |(name, field): (&String, &Value)| {
                let fixed = ["k", "p"].contains(&name.as_str());
                let field = if fixed { Just(field.clone()).boxed() } else { with_defaults(field.clone()) };
                (Just(name.clone()), field)
            };
            let fields: Vec<_> = fields.iter().map(field).collect();
            fields.prop_map(|fields| Some(Value::Object(fields.into_iter().collect()))).boxed()
        }
        (Some(below), _) => with_defaults(below.clone()).prop_map(Some).boxed(),
        (None, _) => Just(None).boxed(),
    }
}

fn node(depth: u32) -> BoxedStrategy<Value> {
    let leaf = Just(json!({ "type": "integer" }));
    let atomic = Just(json!({ "type": "array", "items": { "type": "integer" } }));
    if depth == 0 {
        return prop_oneof![leaf, atomic].boxed();
    }
    let map = node(depth - 1).prop_map(|values| json!({ "type": "object", "additionalProperties": values }));
    let list = (object_of(node(depth - 1)), any::<bool>()).prop_map(|(items, two)| keyed(items, two));
    prop_oneof![2 => leaf, 1 => atomic, 3 => object_of(node(depth - 1)), 2 => map, 3 => list].boxed()
}

fn object_of(field: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let name = select(vec!["a", "b", "c", "d.e"]).prop_map(str::to_owned);
    let fields = btree_map(name, field, 1..4);
    fields.prop_map(|fields| json!({ "type": "object", "properties": Map::from_iter(fields) })).boxed()
}

fn keyed(mut items: Value, two: bool) -> Value {
    items["properties"]["k"] = json!({ "type": "integer" });
    items["required"] = json!(["k"]);
    let mut keys = vec!["k"];
    if two {
        items["properties"]["p"] = json!({ "type": "integer", "default": 1 });
        keys.push("p");
    }
    json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items })
}

/// Gates on some of all paths of a schema. One that clashes with those before it is left out.
fn stanza(schema: &Value) -> impl Strategy<Value = Value> + use<> {
    let mut paths = Vec::new();
    list_paths(schema, "", &mut paths);
    let most = paths.len().min(6);
    let chosen = prop::sample::subsequence(paths, 1..=most).prop_shuffle();
    let gate = (0..3usize, any::<bool>(), 0..3usize);
    let schema = schema.clone();
    (chosen, prop::collection::vec(gate, 6)).prop_map(move |(paths, gates)| {
        let mut stanza = json!({ "featureGates": [] });
        for (path, (stage, on, name)) in paths.into_iter().zip(gates) {
            let longer = with_path(&stanza, &path, ["alpha", "beta", "deprecated"][stage], on, name);
            if is_sound(&longer, &schema) {
                stanza = longer;
            }
        }
        stanza
    })
}

/// Another path of a gate that is there, or another gate.
fn with_path(stanza: &Value, path: &str, stage: &str, on: bool, name: usize) -> Value {
    let mut longer = stanza.clone();
    let gates = longer["featureGates"].as_array_mut().expect("a list");
    match gates.get_mut(name) {
        Some(gate) => gate["fieldPaths"].as_array_mut().expect("a list").push(path.into()),
        None => {
            let name = format!("G{}", gates.len());
            let mut gate = json!({ "name": name, "preRelease": stage, "enabled": on, "fieldPaths": [path] });
            if stage == "deprecated" {
                gate["default"] = false.into();
            }
            gates.push(gate);
        }
    }
    longer
}

fn is_sound(stanza: &Value, schema: &Value) -> bool {
    let declaration = fieldgate::Declaration { stanza, at: "gates", schema, scale: &Value::Null };
    validate(&declaration, None).errors.is_empty()
}

fn list_paths(schema: &Value, at: &str, paths: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{at}['{name}']");
        list_paths(field, &path, paths);
        paths.push(path);
    }
    if let Some(values) = schema.get("additionalProperties") {
        list_paths(values, &format!("{at}[*]"), paths);
        list_paths(values, &format!("{at}.x"), paths);
        paths.push(format!("{at}.x"));
    }
    if schema.get("x-kubernetes-list-type").is_some() {
        list_paths(&schema["items"], &format!("{at}[*]"), paths);
    }
}

/// A value for a schema, out of few, so that two of them often agree; now and then one of another type.
pub(crate) fn value(schema: &Value) -> BoxedStrategy<Value> {
    let fitting = match schema["type"].as_str() {
        Some("object") if schema.get("additionalProperties").is_some() => map(&schema["additionalProperties"]),
        Some("object") => fields(schema),
        Some("array") => list(schema),
        _ => (0..3).prop_map(Value::from).boxed(),
    };
    let other = select(vec![json!(7), json!("text"), json!([]), json!({}), json!({ "a": 1 })]);
    prop_oneof![30 => fitting, 1 => other].boxed()
}

fn map(values: &Value) -> BoxedStrategy<Value> {
    let key = select(vec!["x", "y", "z"]).prop_map(str::to_owned);
    btree_map(key, value(values), 0..3).prop_map(|map| Value::Object(Map::from_iter(map))).boxed()
}

fn fields(schema: &Value) -> BoxedStrategy<Value> {
    let key = |name: &str| schema["required"].as_array().is_some_and(|required| required.iter().any(|one| one == name));
    let field = |(name, schema): (&String, &Value)| {
        let (name, often) = (name.clone(), if key(name) { 0.999 } else { 0.7 });
        prop::option::weighted(often, value(schema)).prop_map(move |value| Some((name.clone(), value?)))
    };
    let fields: Vec<_> = schema["properties"].as_object().expect("fields").iter().map(field).collect();
    fields.prop_map(|fields| Value::Object(fields.into_iter().flatten().collect())).boxed()
}

/// In any order; without two items of one key.
fn list(schema: &Value) -> BoxedStrategy<Value> {
    let keyed = schema.get("x-kubernetes-list-type").is_some();
    prop::collection::vec(value(&schema["items"]), 0..4)
        .prop_map(move |mut items| {
            let mut seen = std::collections::BTreeSet::new();
            let key = |item: &Value| format!("{:?} {:?}", item.get("k"), item.get("p").unwrap_or(&json!(1)));
            items.retain(|item| !keyed || seen.insert(key(item)));
            Value::Array(items)
        })
        .boxed()
}
