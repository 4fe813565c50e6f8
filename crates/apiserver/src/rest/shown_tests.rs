//! What is sent as it is stored is, byte for byte, what reading and printing it gives.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Map, Value, json};
use test_case::test_case;

use super::{
    admit::readable,
    shown::{self, Shown, Stored},
};
use crate::{
    resource::{Custom, Resource, Role},
    schema::Schema,
    selector::Selector,
    serve::answer,
    store::Entry,
};

fn resource(schema: &Value, role: Role) -> Resource {
    let mut resource = crate::builtin::resources().remove(0);
    resource.schema = Schema::parse(schema);
    resource.role = role;
    resource
}

fn custom() -> Role {
    let text = || "things.example.com".to_owned();
    Role::Custom(Custom {
        definition: text(),
        definition_key: text(),
        definition_revision: 1,
        terminating: false,
        emptying: false,
        storage_served: true,
    })
}

fn entry(text: &[u8]) -> Entry {
    Entry { key: "/registry/a".to_owned(), value: Bytes::copy_from_slice(text), revision: 1234 }
}

/// What is answered if it can be sent as it is stored: alone, and in a list that says what its items are.
fn quick(resource: &Resource, text: &[u8]) -> Option<[String; 2]> {
    let mut shown = Shown::Text(Stored::of(resource, &entry(text))?);
    let alone = shown::one(resource, &shown);
    shown.untype();
    Some([alone, shown::one(resource, &shown)].map(|text| String::from_utf8(text.to_vec()).unwrap()))
}

fn slow(resource: &Resource, text: &[u8]) -> Option<[String; 2]> {
    let read = readable(resource, &entry(text)).ok()?;
    let alone = answer::print(&read);
    let mut bare = read;
    bare.as_object_mut()?.retain(|key, _| key != "apiVersion" && key != "kind");
    Some([alone, answer::print(&bare)].map(|text| String::from_utf8(text.to_vec()).unwrap()))
}

const PLAIN: &str =
    r#"{"apiVersion":"v0","kind":"A","metadata":{"generation":1,"name":"n","uid":"u"},"spec":{"a":1,"z":[{"k":"x"}]}}"#;

fn schema() -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "integer", "default": 1},
        "nul": {"type": "integer", "nullable": true},
        "free": {"x-kubernetes-preserve-unknown-fields": true},
        "z": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
    }}}})
}

#[test_case(PLAIN => true; "as we write it")]
#[test_case(&format!("{PLAIN}\n") => true; "a last line feed, as others write it")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":1}}"# => true; "hardly any metadata")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":1,"name":"a"},"spec":{"a":0,"free":{"b":[null,-1,0.5,true]},"nul":null}}"# => true; "values")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"annotations":{"k:{\"n\"}":"\n\u0001é"},"generation":1,"name":"a"}}"# => true; "escapes")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":1},"spec":{}}"# => false; "a default is missing")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":1},"spec":{"a":null}}"# => false; "a null that is none")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":1},"spec":{"a":1,"b":1}}"# => false; "an unknown field")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"color":"red","generation":1}}"# => false; "unknown metadata")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":1,"resourceVersion":"7"}}"# => false; "a version that was stored")]
#[test_case(r#"{"apiVersion":"v0","metadata":{}}"# => false; "no generation")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":0}}"# => false; "not even a first generation")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","deletionGracePeriodSeconds":0,"finalizers":["a"],"generation":1,"managedFields":[{"manager":"m"}]}}"# => true; "types of metadata")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"creationTimestamp":"today","generation":1}}"# => false; "no time")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"finalizers":["a",1],"generation":1}}"# => false; "no finalizer")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"finalizers":[],"generation":1}}"# => false; "no finalizers")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":1,"labels":{"a":"","b":1}}}"# => false; "no label")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":1,"managedFields":[{"color":"red"}]}}"# => false; "unknown in an item")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":1,"ownerReferences":["a"]}}"# => false; "no item")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":1,"uid":""}}"# => false; "an empty text")]
#[test_case(r#"{"metadata":{"generation":1},"apiVersion":"v0"}"# => false; "another order")]
#[test_case(r#"{"apiVersion":"v0","apiVersion":"v0","metadata":{"generation":1}}"# => false; "a name twice")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":1,"name":"\u003c"}}"# => false; "an escape that is not needed")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":1},"spec":{"a":1.0e1}}"# => false; "a number in another form")]
#[test_case(r#"{"apiVersion":"v0","metadata":{"generation":1},"spec":{"a":-0}}"# => false; "minus nothing")]
#[test_case(r#"{"apiVersion":"v0", "metadata":{"generation":1}}"# => false; "a blank")]
#[test_case(r#"{"apiVersion":"v0","metadata":null}"# => false; "no metadata")]
#[test_case(r#"[1]"# => false; "no object")]
fn plain(text: &str) -> bool {
    let resource = resource(&schema(), custom());
    let quick = quick(&resource, text.as_bytes());
    assert!(quick.is_none() || quick == slow(&resource, text.as_bytes()));
    quick.is_some()
}

#[test]
fn what_is_nested_too_deeply_is_left_to_the_reader() {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let resource = resource(&free, custom());
    let nested = |depth: usize| {
        format!(r#"{{"apiVersion":"v0","metadata":{{"generation":1}},"x":{}{}}}"#, "[".repeat(depth), "]".repeat(depth))
    };
    assert!(quick(&resource, nested(90).as_bytes()).is_some());
    assert!(quick(&resource, nested(100_000).as_bytes()).is_none());
}

#[test_case("a=b", "" => true; "a label")]
#[test_case("a=c", "" => false; "another value")]
#[test_case("!a", "" => false; "no label")]
#[test_case("x!=y", "metadata.namespace=s" => true; "a namespace")]
#[test_case("", "metadata.name!=n" => false; "another name")]
fn a_text_is_selected_as_its_tree_is(labels: &str, fields: &str) -> bool {
    let text = r#"{"apiVersion":"v0","kind":"A","metadata":{"generation":1,"labels":{"a":"b","é\"":""},"name":"n","namespace":"s"},"spec":{"a":1}}"#;
    let (resource, entry) = (resource(&schema(), custom()), entry(text.as_bytes()));
    let selector = Selector::parse(Some(labels), Some(fields), &|_| Ok(())).expect("a selector");
    assert!(selector.is_of_head());
    let tree = Shown::Tree(readable(&resource, &entry).expect("an object"));
    let text = Shown::Text(Stored::of(&resource, &entry).expect("a plain text"));
    assert_eq!(text.is_selected(&selector), tree.is_selected(&selector));
    text.is_selected(&selector)
}

#[test]
fn other_fields_are_not_of_the_head() {
    assert!(!Selector::parse(None, Some("spec.a=1"), &|_| Ok(())).expect("a selector").is_of_head());
}

/// Whoever else writes to the store may write anything.
#[test_case("true"; "a flag")]
#[test_case("[1]"; "a list")]
#[test_case("null"; "nothing")]
#[test_case("{"; "a part")]
fn what_is_no_object_is_an_error_and_no_panic(text: &str) {
    let resource = resource(&schema(), custom());
    assert_eq!(readable(&resource, &entry(text.as_bytes())).unwrap_err().code, 500);
}

/// Few names, so that schemas and objects meet, in orders that escapes change.
fn name() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "c\"d", "apiVersion", "kind", "metadata", "name", "resourceVersion", "uid", "é", "\n"])
        .prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    let texts = vec!["", "x", "a longer text with \" and \\", "\u{1}\u{1f}\u{7f}\t\r\n", "日本", "</>"];
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-100i64..100).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(texts).prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((name(), inner), 0..5).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

pub(super) fn node() -> impl Strategy<Value = Value> {
    let flags = || {
        vec(
            (
                select(vec!["nullable", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"]),
                any::<bool>(),
            ),
            0..3,
        )
    };
    let leaf = (flags(), proptest::option::weighted(0.2, scalar())).prop_map(|(flags, default)| {
        let mut node: Map<String, Value> = flags.into_iter().map(|(name, on)| (name.to_owned(), on.into())).collect();
        node.extend(default.map(|default| ("default".to_owned(), default)));
        Value::Object(node)
    });
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let properties = vec((name(), inner.clone()), 0..5).prop_map(|all| Value::Object(all.into_iter().collect()));
        let some = move || proptest::option::weighted(0.3, inner.clone());
        (flags(), properties, some(), some()).prop_map(|(flags, properties, additional, items)| {
            let mut node: Map<String, Value> =
                flags.into_iter().map(|(name, on)| (name.to_owned(), on.into())).collect();
            node.insert("properties".to_owned(), properties);
            node.extend(additional.map(|additional| ("additionalProperties".to_owned(), additional)));
            node.extend(items.map(|items| ("items".to_owned(), items)));
            Value::Object(node)
        })
    })
}

pub(super) fn object() -> impl Strategy<Value = Value> {
    (value(), value()).prop_map(|(mut object, metadata)| {
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion".to_owned(), "v0".into());
            if !metadata.is_array() {
                map.insert("metadata".to_owned(), metadata);
            }
        }
        object
    })
}

/// Ways in which a text is not as we write it.
fn spoilt(text: &str, way: usize, at: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    let at = at % bytes.len();
    match way {
        0 => drop(bytes.remove(at)),
        1 => bytes.insert(at, b' '),
        2 => bytes[at] = b'0',
        3 => bytes[at] = b'\\',
        4 => bytes = text.replace('<', "\\u003c").into_bytes(),
        5 => bytes = text.replacen("\"a\"", "\"b\"", 1).into_bytes(),
        6 => bytes[at] = 0xff,
        _ => {}
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Soundness: whatever a store holds.
    #[test]
    fn quick_is_slow(schema in node(), object in object(), prunes: bool, way in 0..14usize, at: usize) {
        let resource = resource(&schema, if prunes { custom() } else { Role::Plain });
        let text = spoilt(&object.to_string(), way, at);
        if let Some(quick) = quick(&resource, &text) {
            prop_assert_eq!(Some(quick), slow(&resource, &text));
        }
    }

    /// The same of objects that have been through a server: these are the ones to be quick for.
    #[test]
    fn what_was_read_is_plain(schema in node(), object in object(), prunes: bool) {
        let resource = resource(&schema, if prunes { custom() } else { Role::Plain });
        let Ok(mut read) = readable(&resource, &entry(object.to_string().as_bytes())) else { return Ok(()) };
        crate::object::meta_mut(&mut read).remove("resourceVersion");
        let text = read.to_string();
        let (quick, slow) = (quick(&resource, text.as_bytes()), slow(&resource, text.as_bytes()));
        prop_assert!(quick.is_none() || quick == slow);
    }
}
