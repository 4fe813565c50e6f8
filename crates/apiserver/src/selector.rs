//! Label and field selectors: which objects a list or watch is about.

mod labels;

use serde_json::Value;

use crate::{
    name,
    status::{Result, Status},
};

#[derive(Clone, Debug, Default)]
pub struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    /// Numbers that are larger, or smaller.
    Above(String, i64),
    Below(String, i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    /// `metadata.name`, `metadata.namespace`, or a field that a definition lets select by.
    field: String,
    value: String,
    equal: bool,
}

impl Selector {
    /// Reads both selectors; `selectable` are fields of the resource beside its name and namespace.
    pub fn parse(labels: Option<&str>, fields: Option<&str>, selectable: &[String]) -> Result<Selector> {
        let labels = labels::parse(labels.unwrap_or_default()).map_err(Status::bad_request)?;
        let fields = split_terms(fields.unwrap_or_default());
        let fields = fields.iter().filter(|part| !part.is_empty()).map(|part| parse_field(part, selectable));
        Ok(Selector { labels, fields: fields.collect::<Result<_>>()? })
    }

    /// The LabelSelector of an object; nothing selects all.
    pub fn of_labels(selector: &Value) -> std::result::Result<Selector, String> {
        let mut labels = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            let value = label_value(value.as_str().unwrap_or_default())?;
            labels.push(Requirement::In(label_key(key)?, vec![value]));
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            labels.push(of_expression(expression)?);
        }
        Ok(Selector { labels, fields: Vec::new() })
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object["metadata"]["labels"].get(key).and_then(Value::as_str);
        let number = |label: Option<&str>| label.and_then(|text| text.parse::<i64>().ok());
        let labels = self.labels.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => label(key).is_some_and(|value| values.iter().any(|wanted| wanted == value)),
            Requirement::NotIn(key, values) => {
                label(key).is_none_or(|value| values.iter().all(|wanted| wanted != value))
            }
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
            Requirement::Above(key, than) => number(label(key)).is_some_and(|found| found > *than),
            Requirement::Below(key, than) => number(label(key)).is_some_and(|found| found < *than),
        });
        labels && self.fields.iter().all(|field| (field_text(object, &field.field) == field.value) == field.equal)
    }

    /// The one name that can match, if the selector says so: then one key is read and not all.
    pub fn name(&self) -> Option<&str> {
        self.fields.iter().find(|field| field.field == "metadata.name" && field.equal).map(|field| field.value.as_str())
    }
}

fn of_expression(expression: &Value) -> std::result::Result<Requirement, String> {
    let text = |key: &str| expression[key].as_str().unwrap_or_default();
    let values = expression["values"].as_array().into_iter().flatten();
    let values = values.map(|value| label_value(value.as_str().unwrap_or_default()));
    let (key, values) = (label_key(text("key"))?, values.collect::<std::result::Result<Vec<_>, _>>()?);
    match (text("operator"), values.is_empty()) {
        ("In", false) => Ok(Requirement::In(key, values)),
        ("NotIn", false) => Ok(Requirement::NotIn(key, values)),
        ("Exists", true) => Ok(Requirement::Exists(key)),
        ("DoesNotExist", true) => Ok(Requirement::Absent(key)),
        ("In" | "NotIn", true) => {
            Err("values: Required value: must be specified when `operator` is 'In' or 'NotIn'".to_owned())
        }
        ("Exists" | "DoesNotExist", false) => {
            Err("values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'".to_owned())
        }
        (other, _) => Err(format!("operator: Invalid value: {other:?}: not a valid selector operator")),
    }
}

/// What an object has in a field, as text; nothing if it has none.
fn field_text(object: &Value, field: &str) -> String {
    match field.split('.').try_fold(object, |value, name| value.get(name)) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Commas part terms, unless a backslash stands before them.
fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, terms.last_mut()) {
            (',', _) => terms.push(String::new()),
            ('\\', Some(term)) => {
                term.push(c);
                term.extend(chars.next());
            }
            (c, Some(term)) => term.push(c),
            (_, None) => {}
        }
    }
    terms
}

/// A value without the backslashes that let it hold `\`, `,` and `=`.
fn unescape(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                other => {
                    let escape = other.map(String::from).unwrap_or_default();
                    let why = format!("invalid field selector: invalid escape sequence: \\{escape}");
                    return Err(Status::bad_request(why));
                }
            },
            (c, _) => out.push(c),
        }
    }
    Ok(out)
}

fn parse_field(text: &str, selectable: &[String]) -> Result<FieldRequirement> {
    let (key, value, equal) = match (text.split_once("!="), text.split_once("=="), text.split_once('=')) {
        (Some((key, value)), _, _) => (key, value, false),
        (_, Some((key, value)), _) | (_, _, Some((key, value))) => (key, value, true),
        _ => return Err(Status::bad_request(format!("invalid selector: '{text}'; can't understand '{text}'"))),
    };
    if !matches!(key, "metadata.name" | "metadata.namespace") && !selectable.iter().any(|known| known == key) {
        return Err(Status::bad_request(format!("field label not supported: {key}")));
    }
    Ok(FieldRequirement { field: key.to_owned(), value: unescape(value)?, equal })
}

fn label_key(text: &str) -> std::result::Result<String, String> {
    let key = text.trim();
    name::check_qualified(key).map_err(|why| format!("key: Invalid value: {key:?}: {why}"))?;
    Ok(key.to_owned())
}

fn label_value(text: &str) -> std::result::Result<String, String> {
    let value = text.trim();
    name::check_label_value(value).map_err(|why| format!("values: Invalid value: {value:?}: {why}"))?;
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case("app=web" => true)]
    #[test_case("app==web,tier in (a, b)" => true)]
    #[test_case("app!=web" => false)]
    #[test_case("app notin (db,cache)" => true)]
    #[test_case("app" => true)]
    #[test_case("!app" => false)]
    #[test_case("missing" => false)]
    #[test_case("missing!=x" => true)]
    #[test_case("!missing, app" => true)]
    #[test_case("" => true)]
    fn labels(selector: &str) -> bool {
        let object = json!({"metadata": {"name": "n", "labels": {"app": "web", "tier": "a"}}});
        Selector::parse(Some(selector), None, &[]).unwrap().matches(&object)
    }

    #[test_case("a in b")]
    #[test_case("a in (b")]
    #[test_case("a,,b")]
    #[test_case("a=b c")]
    #[test_case("=x")]
    fn bad_labels_are_bad_requests(selector: &str) {
        assert_eq!(Selector::parse(Some(selector), None, &[]).unwrap_err().code, 400);
    }

    #[test]
    fn fields_are_name_and_namespace() {
        let object = json!({"metadata": {"name": "n", "namespace": "d"}});
        let selector = Selector::parse(None, Some("metadata.name=n,metadata.namespace!=e"), &[]).unwrap();
        assert!(selector.matches(&object));
        assert_eq!(selector.name(), Some("n"));
        let refused = Selector::parse(None, Some("spec.x=1"), &["spec.y".to_owned()]).unwrap_err();
        assert_eq!(refused.message, "field label not supported: spec.x");
    }

    #[test_case("spec.color=red" => true; "text")]
    #[test_case("spec.color!=red" => false; "other text")]
    #[test_case("spec.size=3,spec.on=true" => true; "number and flag")]
    #[test_case("spec.none=" => true; "missing is empty")]
    #[test_case(r"spec.list=a\,b\=c" => true; "escapes")]
    fn selectable_fields(selector: &str) -> bool {
        let object = json!({"spec": {"color": "red", "size": 3, "on": true, "list": "a,b=c"}});
        let known = ["spec.color", "spec.size", "spec.on", "spec.none", "spec.list"].map(str::to_owned);
        Selector::parse(None, Some(selector), &known).unwrap().matches(&object)
    }
}
