//! One step of a path through an object.

use std::{cmp::Ordering, fmt};

use serde_json::{Map, Value};

use super::value;

#[derive(Clone, Debug)]
pub(crate) enum Element {
    /// A field of an object, or an entry of a map.
    Field(String),
    /// An item of a list whose items are told apart by some of their fields; in the order of the names of those.
    Key(Vec<(String, Value)>),
    /// An item of a set.
    Item(Value),
    Index(i64),
}

/// Why a text is no element.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// Of a kind that a later version may know; to be left out.
    Unknown,
    Malformed(String),
}

impl Element {
    pub(crate) fn field(name: &str) -> Element {
        Element::Field(name.to_owned())
    }

    /// Reads `f:name`, `k:{"key":1}`, `v:"item"` or `i:0`.
    pub(crate) fn parse(text: &str) -> Result<Element, Bad> {
        let malformed = |why: String| Bad::Malformed(format!("{text:?} names no field: {why}"));
        let json = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| malformed(error.to_string()));
        let (kind, rest) = text.split_once(':').ok_or_else(|| malformed("the colon is missing".to_owned()))?;
        match kind {
            "f" => Ok(Element::field(rest)),
            "v" => Ok(Element::Item(json(rest)?)),
            "i" => rest.parse().map(Element::Index).map_err(|_| malformed(format!("{rest:?} is no index"))),
            "k" => {
                let keys: Map<String, Value> =
                    serde_json::from_str(rest).map_err(|error| malformed(error.to_string()))?;
                Ok(Element::Key(keys.into_iter().collect()))
            }
            _ if kind.chars().count() == 1 => Err(Bad::Unknown),
            _ => Err(malformed("it must begin with f:, k:, v: or i:".to_owned())),
        }
    }

    /// The form in `fieldsV1`.
    pub(crate) fn print(&self) -> String {
        match self {
            Element::Field(name) => format!("f:{name}"),
            Element::Key(keys) => {
                let pair = |(name, key): &(String, Value)| {
                    format!("{}:{}", value::print(&Value::from(name.as_str())), value::print(key))
                };
                format!("k:{{{}}}", keys.iter().map(pair).collect::<Vec<_>>().join(","))
            }
            Element::Item(item) => format!("v:{}", value::print(item)),
            Element::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Element::Field(_) => 0,
            Element::Key(_) => 1,
            Element::Item(_) => 2,
            Element::Index(_) => 3,
        }
    }
}

/// The form for people: `.name`, `[key="a"]`, `[="item"]`, `[0]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(name) => write!(f, ".{name}"),
            Element::Key(keys) => {
                let pairs: Vec<String> = keys.iter().map(|(name, key)| format!("{name}={}", shown(key))).collect();
                write!(f, "[{}]", pairs.join(","))
            }
            Element::Item(item) => write!(f, "[={}]", shown(item)),
            Element::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        other => value::print(other),
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Element) -> Ordering {
        match (self, other) {
            (Element::Field(a), Element::Field(b)) => a.cmp(b),
            (Element::Key(a), Element::Key(b)) => {
                let pairs = a.iter().zip(b).map(|(a, b)| a.0.cmp(&b.0).then_with(|| value::order(&a.1, &b.1)));
                pairs.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
            }
            (Element::Item(a), Element::Item(b)) => value::order(a, b),
            (Element::Index(a), Element::Index(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Element) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Element) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Element {}
