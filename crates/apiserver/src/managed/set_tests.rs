//! Sets: their form, what can be done with them, and what they are made of.

use serde_json::{Value, json};
use test_case::test_case;

use super::{compare::compare, node::Node, own::fields, set::Set};

fn set(json: Value) -> Set {
    Set::parse(&json).unwrap()
}

#[test_case(json!({}) => json!({}); "empty")]
#[test_case(json!({"f:a": {}}) => json!({"f:a": {}}); "a field")]
#[test_case(json!({"f:a": {".": {}, "f:b": {}}}) => json!({"f:a": {".": {}, "f:b": {}}}); "a field and one below")]
#[test_case(json!({"f:a": {".": {}}}) => json!({"f:a": {}}); "a dot alone says nothing")]
#[test_case(json!({"f:": {}, "f:a:b": {}, "f:.": {}}) => json!({"f:": {}, "f:.": {}, "f:a:b": {}}); "strange names")]
#[test_case(json!({r#"k:{"b":1.0,"a":"<"}"#: {}}) => json!({r#"k:{"a":"\u003c","b":1}"#: {}}); "keys are sorted and printed as Go does")]
#[test_case(json!({"v:true": {}, "v:1": {}, r#"v:"x""#: {}, "i:3": {}}) => json!({"v:true": {}, "v:1": {}, r#"v:"x""#: {}, "i:3": {}}); "items and places")]
#[test_case(json!({"x:later": {"f:a": {}}, "f:b": {}}) => json!({"f:b": {}}); "kinds of a later version")]
fn read_and_printed(json: Value) -> Value {
    set(json).to_json()
}

#[test_case(json!([]), "must be an object"; "no object")]
#[test_case(json!({"f:a": 1}), "must be an object"; "no object below")]
#[test_case(json!({"a": {}}), "the colon is missing"; "no colon")]
#[test_case(json!({"field:a": {}}), "must begin with f:"; "no kind")]
#[test_case(json!({"k:[1]": {}}), "names no field"; "keys of no object")]
#[test_case(json!({"v:{": {}}), "names no field"; "no value")]
#[test_case(json!({"i:one": {}}), "is no index"; "no place")]
fn refused(json: Value, why: &str) {
    let said = Set::parse(&json).unwrap_err();
    assert!(said.contains(why), "{said}");
}

#[test_case("union" => json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}, "f:d": {"f:x": {}}, "f:e": {}}))]
#[test_case("intersection" => json!({"f:a": {"f:b": {}}}))]
#[test_case("difference" => json!({"f:a": {}, "f:d": {"f:x": {}}}); "what is below a field stays without it")]
#[test_case("without" => json!({"f:a": {}}); "what is below a field goes with it")]
fn combined(how: &str) -> Value {
    let a = set(json!({"f:a": {".": {}, "f:b": {}}, "f:d": {"f:x": {}}}));
    let b = set(json!({"f:a": {"f:b": {}, "f:c": {}}, "f:e": {}}));
    let above = b.clone().union(&set(json!({"f:d": {}})));
    let found = match how {
        "union" => a.union(&b),
        "intersection" => a.intersection(&b),
        "difference" => a.difference(&above),
        _ => a.without(&above),
    };
    found.to_json()
}

fn node() -> Node {
    Node::of_object(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "n": {"type": "integer"},
        "struct": {"type": "object", "properties": {"a": {"type": "string"}}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}}}))
}

#[test_case(json!({"n": 1}) => json!({"f:n": {}}); "leaf")]
#[test_case(json!({"struct": {"a": "x"}}) => json!({"f:struct": {"f:a": {}}}); "structure is nobody's")]
#[test_case(json!({"struct": {}}) => json!({"f:struct": {}}); "unless it is empty")]
#[test_case(json!({"map": {"k": "v"}}) => json!({"f:map": {"f:k": {}}}); "entries")]
#[test_case(json!({"list": ["a"]}) => json!({"f:list": {}}); "a list without a type is one piece")]
#[test_case(json!({"set": ["b", "a"]}) => json!({"f:set": {r#"v:"a""#: {}, r#"v:"b""#: {}}}); "items")]
#[test_case(json!({"set": []}) => json!({}); "no items")]
#[test_case(json!({"free": {"a": {"b": [1]}}}) => json!({"f:free": {"f:a": {".": {}, "f:b": {}}}}); "without schema")]
#[test_case(json!({"n": null}) => json!({"f:n": {}}); "null")]
fn made_of(spec: Value) -> Value {
    let found = fields(&node(), &json!({ "spec": spec })).to_json();
    found.get("f:spec").cloned().unwrap_or(json!({}))
}

#[test_case(json!({"n": 1}), json!({"n": 2}) => [json!({}), json!({"f:spec": {"f:n": {}}}), json!({})]; "modified")]
#[test_case(json!({"n": 1}), json!({"n": 1.0}) => [json!({}), json!({}), json!({})]; "one is one")]
#[test_case(json!({}), json!({"map": {"a": "b"}}) => [json!({}), json!({}), json!({"f:spec": {".": {}, "f:map": {".": {}, "f:a": {}}}})]; "added with what is around it")]
#[test_case(json!({"set": ["a", "b"]}), json!({"set": ["b", "c"]}) => [json!({"f:spec": {"f:set": {r#"v:"a""#: {}}}}), json!({}), json!({"f:spec": {"f:set": {r#"v:"c""#: {}}}})]; "items")]
#[test_case(json!({"free": {"a": "x"}}), json!({"free": {"a": {"b": 1}}}) => [json!({}), json!({"f:spec": {"f:free": {"f:a": {}}}}), json!({"f:spec": {"f:free": {"f:a": {"f:b": {}}}}})]; "another kind of value")]
fn changed(old: Value, new: Value) -> [Value; 3] {
    let old = if old.as_object().unwrap().is_empty() { json!({}) } else { json!({ "spec": old }) };
    let found = compare(&node(), &old, &json!({ "spec": new }));
    [found.removed, found.modified, found.added].map(|set| set.to_json())
}
