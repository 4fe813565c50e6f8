//! How the fields of a version are merged: its schema, with nothing but that.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// By `apiVersion`, the types of all versions of one kind.
pub(crate) type Types = BTreeMap<String, Node>;

/// The type of one place in an object.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Typed(Box<Type>),
    /// Without a schema: anything, as one piece.
    Whole,
    /// Without a schema: maps by their keys, anything else as one piece.
    Guessed,
}

/// What may be there; several where the schema does not say which.
#[derive(Clone, Debug, Default)]
pub(crate) struct Type {
    scalar: Option<Scalar>,
    list: Option<(bool, Vec<String>, Node)>,
    map: Option<MapType>,
}

#[derive(Clone, Debug)]
struct MapType {
    atomic: bool,
    fields: BTreeMap<String, Field>,
    rest: Option<Node>,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub node: Node,
    pub default: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    Text,
    Boolean,
    Any,
}

#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    /// Replaced as a whole.
    pub atomic: bool,
    /// What tells items apart; none in a set.
    pub keys: &'a [String],
    pub items: &'a Node,
}

#[derive(Clone, Copy)]
pub(crate) struct Map<'a> {
    pub atomic: bool,
    pub fields: &'a BTreeMap<String, Field>,
    /// The type of what is not among the fields; none if nothing else may be there.
    pub rest: Option<&'a Node>,
}

impl<'a> Map<'a> {
    pub(crate) fn child(&self, name: &str) -> Option<&'a Node> {
        self.fields.get(name).map(|field| &field.node).or(self.rest)
    }
}

/// What a value is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar,
    List,
    Map,
    /// A null, or a value that does not fit, where several kinds may be.
    Open,
}

static WHOLE: Node = Node::Whole;
static GUESSED: Node = Node::Guessed;
static NO_FIELDS: BTreeMap<String, Field> = BTreeMap::new();

impl Node {
    /// The type of whole objects, from the schema of a definition.
    pub(crate) fn of_object(schema: &Value) -> Node {
        let mut schema = schema.clone();
        if schema.get("type").is_none() {
            schema["type"] = "object".into();
        }
        schema["x-kubernetes-embedded-resource"] = true.into();
        Node::parse(&schema, false)
    }

    /// `open`: whether something above lets unknown fields stay, which holds for all below it.
    fn parse(schema: &Value, open: bool) -> Node {
        let open = open || schema["x-kubernetes-preserve-unknown-fields"] == true;
        let kind = schema["type"].as_str().unwrap_or_default();
        let mut found = Type::default();
        if matches!(kind, "object" | "") {
            found.map = Some(parse_map(schema, open));
        }
        if matches!(kind, "array" | "") {
            found.list = Some(parse_list(schema, open));
        }
        if !matches!(kind, "object" | "array") {
            found.scalar = Some(scalar(kind, schema["format"].as_str().unwrap_or_default()));
        }
        Node::Typed(Box::new(found))
    }

    pub(crate) fn scalar(&self) -> Option<Scalar> {
        match self {
            Node::Typed(found) => found.scalar,
            Node::Whole | Node::Guessed => Some(Scalar::Any),
        }
    }

    pub(crate) fn list(&self) -> Option<List<'_>> {
        match self {
            Node::Typed(found) => {
                found.list.as_ref().map(|(atomic, keys, items)| List { atomic: *atomic, keys, items })
            }
            Node::Whole | Node::Guessed => Some(List { atomic: true, keys: &[], items: &WHOLE }),
        }
    }

    pub(crate) fn map(&self) -> Option<Map<'_>> {
        match self {
            Node::Typed(found) => {
                let map = found.map.as_ref()?;
                Some(Map { atomic: map.atomic, fields: &map.fields, rest: map.rest.as_ref() })
            }
            Node::Whole => Some(Map { atomic: true, fields: &NO_FIELDS, rest: Some(&WHOLE) }),
            Node::Guessed => Some(Map { atomic: false, fields: &NO_FIELDS, rest: Some(&GUESSED) }),
        }
    }

    /// What a value is here.
    pub(crate) fn kind(&self, value: Option<&Value>) -> Kind {
        let possible = [
            (Kind::Map, self.map().is_some()),
            (Kind::Scalar, self.scalar().is_some()),
            (Kind::List, self.list().is_some()),
        ];
        let mut possible = possible.iter().filter(|(_, is)| *is).map(|(kind, _)| *kind);
        let wanted = match value {
            None | Some(Value::Null) => Kind::Open,
            Some(Value::Array(_)) => Kind::List,
            Some(Value::Object(_)) => Kind::Map,
            Some(_) => Kind::Scalar,
        };
        match (possible.clone().count(), possible.any(|kind| kind == wanted)) {
            (_, true) => wanted,
            (1, _) => self.first(),
            _ => Kind::Open,
        }
    }

    /// As what an open value is handled.
    pub(crate) fn first(&self) -> Kind {
        match (self.map(), self.scalar()) {
            (Some(_), _) => Kind::Map,
            (None, Some(_)) => Kind::Scalar,
            (None, None) => Kind::List,
        }
    }
}

fn scalar(kind: &str, format: &str) -> Scalar {
    match (kind, format) {
        ("integer" | "number", _) => Scalar::Numeric,
        ("boolean", _) => Scalar::Boolean,
        ("string", "" | "byte") => Scalar::Text,
        _ => Scalar::Any,
    }
}

fn parse_list(schema: &Value, open: bool) -> (bool, Vec<String>, Node) {
    let items = schema.get("items").filter(|items| items.is_object());
    let items = items.map_or(Node::Whole, |items| Node::parse(items, open));
    let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
    let keys = keys.filter_map(Value::as_str).map(str::to_owned).collect();
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => (false, Vec::new(), items),
        Some("map") => (false, keys, items),
        _ => (true, Vec::new(), items),
    }
}

fn parse_map(schema: &Value, open: bool) -> MapType {
    let properties = schema["properties"].as_object();
    let field = |schema: &Value| Field { node: Node::parse(schema, open), default: schema.get("default").cloned() };
    let mut fields: BTreeMap<String, Field> =
        properties.into_iter().flatten().map(|(name, schema)| (name.clone(), field(schema))).collect();
    if schema["x-kubernetes-embedded-resource"] == true {
        fields.extend(object_fields());
    }
    let rest = match schema.get("additionalProperties") {
        Some(Value::Bool(true)) => Some(Node::Guessed),
        Some(Value::Bool(false)) => None,
        Some(schema) if schema.is_object() => Some(Node::parse(schema, open)),
        _ if open || fields.is_empty() => Some(Node::Guessed),
        _ => None,
    };
    MapType { atomic: schema["x-kubernetes-map-type"] == "atomic", fields, rest }
}

/// What every object has.
fn object_fields() -> impl Iterator<Item = (String, Field)> {
    let text = json!({"type": "string"});
    let fields = [("apiVersion", text.clone()), ("kind", text), ("metadata", metadata())];
    fields
        .into_iter()
        .map(|(name, schema)| (name.to_owned(), Field { node: Node::parse(&schema, false), default: None }))
}

fn metadata() -> Value {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let time = json!({"type": "string", "format": "date-time"});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let owner = json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
        "apiVersion": text, "kind": text, "name": text, "uid": text,
        "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"}}});
    json!({"type": "object", "properties": {
        "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
        "generation": number, "deletionGracePeriodSeconds": number, "creationTimestamp": time, "deletionTimestamp": time,
        "labels": texts, "annotations": texts,
        "finalizers": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "ownerReferences": {"type": "array", "items": owner, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"]},
        "managedFields": {"type": "array", "items": {"type": "object"}},
    }})
}
