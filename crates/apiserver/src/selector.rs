//! Label and field selectors: which objects a list or watch is about.

mod labels;

use serde_json::Value;

use crate::{
    field::FieldError,
    name,
    status::{Result, Status},
};

#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
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

/// Whether a field is one to select by.
pub(crate) type Check<'a> = &'a dyn Fn(&str) -> std::result::Result<(), String>;

impl Selector {
    /// Reads both selectors; `check` says why a field is none to select by.
    pub(crate) fn parse(labels: Option<&str>, fields: Option<&str>, check: Check<'_>) -> Result<Selector> {
        let labels = labels::parse(labels.unwrap_or_default()).map_err(Status::bad_request)?;
        let fields = split_terms(fields.unwrap_or_default());
        let fields = fields.iter().filter(|part| !part.is_empty()).map(|part| parse_field(part, check));
        Ok(Selector { labels, fields: fields.collect::<Result<_>>()? })
    }

    /// The LabelSelector of an object; nothing selects all.
    pub(crate) fn of_labels(selector: &Value) -> std::result::Result<Selector, String> {
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

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether labels, name and namespace are all that it looks at.
    pub(crate) fn is_of_head(&self) -> bool {
        self.fields.iter().all(|field| matches!(field.field.as_str(), "metadata.name" | "metadata.namespace"))
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
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
    pub(crate) fn name(&self) -> Option<&str> {
        self.fields.iter().find(|field| field.field == "metadata.name" && field.equal).map(|field| field.value.as_str())
    }
}

/// What is wrong with the LabelSelector of an object, each with its place.
pub(crate) fn faults(selector: &Value, at: &str) -> Vec<FieldError> {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let at_labels = format!("{at}.matchLabels");
    let label = |(key, value): (&String, &Value)| {
        let value = value.as_str().unwrap_or_default();
        let fault = name::check_label_value(value).err().map(|why| FieldError::invalid(&at_labels, value, why));
        key_faults(key, &at_labels).into_iter().chain(fault).collect::<Vec<_>>()
    };
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten().enumerate();
    let expression = |(index, expression): (usize, &Value)| {
        expression_faults(expression, &format!("{at}.matchExpressions[{index}]"))
    };
    labels.flat_map(label).chain(expressions.flat_map(expression)).collect()
}

fn key_faults(key: &str, at: &str) -> Vec<FieldError> {
    name::qualified_faults(key).into_iter().map(|why| FieldError::invalid(at, key, why)).collect()
}

fn expression_faults(expression: &Value, at: &str) -> Vec<FieldError> {
    let text = |key: &str| expression[key].as_str().unwrap_or_default();
    let values: Vec<&str> = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let field = |name: &str| format!("{at}.{name}");
    let mut errors = Vec::new();
    match text("operator") {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(field("values"), why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(field("values"), why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.push(FieldError::invalid(field("operator"), other, "not a valid selector operator")),
    }
    errors.extend(key_faults(text("key"), &field("key")));
    for (index, value) in values.iter().enumerate() {
        let fault = name::check_label_value(value).err();
        errors.extend(fault.map(|why| FieldError::invalid(format!("{at}.values[{index}]"), *value, why)));
    }
    errors
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

fn parse_field(text: &str, check: Check<'_>) -> Result<FieldRequirement> {
    let (key, value, equal) = match (text.split_once("!="), text.split_once("=="), text.split_once('=')) {
        (Some((key, value)), _, _) => (key, value, false),
        (_, Some((key, value)), _) | (_, _, Some((key, value))) => (key, value, true),
        _ => return Err(Status::bad_request(format!("invalid selector: '{text}'; can't understand '{text}'"))),
    };
    check(key).map_err(Status::bad_request)?;
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
        Selector::parse(Some(selector), None, &|_| Ok(())).unwrap().matches(&object)
    }

    #[test_case("a in b")]
    #[test_case("a in (b")]
    #[test_case("a,,b")]
    #[test_case("a=b c")]
    #[test_case("=x")]
    fn bad_labels_are_bad_requests(selector: &str) {
        assert_eq!(Selector::parse(Some(selector), None, &|_| Ok(())).unwrap_err().code, 400);
    }

    #[test]
    fn fields_are_name_and_namespace() {
        let object = json!({"metadata": {"name": "n", "namespace": "d"}});
        let selector = Selector::parse(None, Some("metadata.name=n,metadata.namespace!=e"), &|_| Ok(())).unwrap();
        assert!(selector.matches(&object));
        assert_eq!(selector.name(), Some("n"));
        let refused = Selector::parse(None, Some("spec.x=1"), &|key| Err(format!("not by {key}"))).unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (400, "not by spec.x"));
    }

    #[test_case("spec.color=red" => true; "text")]
    #[test_case("spec.color!=red" => false; "other text")]
    #[test_case("spec.size=3,spec.on=true" => true; "number and flag")]
    #[test_case("spec.none=" => true; "missing is empty")]
    #[test_case(r"spec.list=a\,b\=c" => true; "escapes")]
    fn selectable_fields(selector: &str) -> bool {
        let object = json!({"spec": {"color": "red", "size": 3, "on": true, "list": "a,b=c"}});
        Selector::parse(None, Some(selector), &|_| Ok(())).unwrap().matches(&object)
    }
}
