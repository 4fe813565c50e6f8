//! What is wrong with a field of an object, in the words clients know from Kubernetes.

use std::{collections::BTreeSet, fmt};

use serde_json::{Value, json};

use crate::gotext;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Required,
    Invalid,
    TypeInvalid,
    NotSupported,
    Duplicate,
    Forbidden,
    TooLong,
    TooMany,
}

impl Fault {
    /// The text a person reads and the reason a program matches on.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Fault::Required => ("Required value", "FieldValueRequired"),
            Fault::Invalid => ("Invalid value", "FieldValueInvalid"),
            Fault::TypeInvalid => ("Invalid value", "FieldValueTypeInvalid"),
            Fault::NotSupported => ("Unsupported value", "FieldValueNotSupported"),
            Fault::Duplicate => ("Duplicate value", "FieldValueDuplicate"),
            Fault::Forbidden => ("Forbidden", "FieldValueForbidden"),
            Fault::TooLong => ("Too long", "FieldValueTooLong"),
            Fault::TooMany => ("Too many", "FieldValueTooMany"),
        }
    }

    /// Whether a value with this fault may not have the type that rules rely on, or be too large for them.
    pub fn blocks_rules(self) -> bool {
        use Fault::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
        matches!(self, NotSupported | Required | TooLong | TooMany | TypeInvalid)
    }

    fn shows_value(self) -> bool {
        !matches!(self, Fault::Required | Fault::Forbidden | Fault::TooLong)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    pub fault: Fault,
    pub field: String,
    pub value: Value,
    /// Whether the value is left out of the text, as it may be large.
    pub silent: bool,
    pub detail: String,
}

impl FieldError {
    pub fn new(fault: Fault, field: impl Into<String>, value: Value, detail: impl Into<String>) -> FieldError {
        FieldError { fault, field: field.into(), value, silent: false, detail: detail.into() }
    }

    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError::new(Fault::Required, field, Value::Null, detail)
    }

    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
        FieldError::new(Fault::Invalid, field, value.into(), detail)
    }

    /// Invalid, with a text for the value: Kubernetes shows some in a form of its own.
    pub fn invalid_as(field: impl Into<String>, shown: &str, detail: impl fmt::Display) -> FieldError {
        let error = FieldError::invalid(field, Value::Null, format!("{shown}: {detail}"));
        FieldError { silent: true, ..error }
    }

    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError::new(Fault::Forbidden, field, Value::Null, detail)
    }

    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> FieldError {
        FieldError::new(Fault::Duplicate, field, value.into(), "")
    }

    pub fn not_supported(field: impl Into<String>, value: impl Into<Value>, supported: &[&str]) -> FieldError {
        let quoted: Vec<String> = supported.iter().map(|value| gotext::quote(value)).collect();
        let detail = format!("supported values: {}", quoted.join(", "));
        FieldError::new(Fault::NotSupported, field, value.into(), detail)
    }

    /// The text without the field's name.
    pub fn body(&self) -> String {
        let mut text = self.fault.texts().0.to_owned();
        if self.fault.shows_value() && !self.silent {
            text = format!("{text}: {}", gotext::shown(&self.value));
        }
        if self.detail.is_empty() { text } else { format!("{text}: {}", self.detail) }
    }

    pub fn cause(&self) -> Value {
        json!({"reason": self.fault.texts().1, "message": self.body(), "field": self.field})
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// All of them in one text: one alone, several in brackets, none twice.
pub(crate) fn join(errors: &[FieldError]) -> String {
    let mut told = BTreeSet::new();
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.retain(|text| told.insert(text.clone()));
    match texts.len() {
        1 => texts.remove(0),
        _ => format!("[{}]", texts.join(", ")),
    }
}

/// `spec` and `replicas` as `spec.replicas`; at the root there is nothing before the dot.
pub(crate) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(FieldError::required("spec.x", "") => "spec.x: Required value"; "required")]
    #[test_case(FieldError::required("spec.x", "must be set") => "spec.x: Required value: must be set"; "required with detail")]
    #[test_case(FieldError::invalid("a", 5, "too big") => "a: Invalid value: 5: too big"; "number")]
    #[test_case(FieldError::invalid("a", "b\"c", "no") => r#"a: Invalid value: "b\"c": no"#; "string")]
    #[test_case(FieldError::duplicate("l[1]", json!({"name": "a"})) => r#"l[1]: Duplicate value: {"name":"a"}"#; "duplicate")]
    #[test_case(FieldError::not_supported("t", "c", &["a", "b"]) => r#"t: Unsupported value: "c": supported values: "a", "b""#; "unsupported")]
    fn reads_as_in_kubernetes(error: FieldError) -> String {
        error.to_string()
    }

    #[test]
    fn several_are_bracketed_and_none_is_said_twice() {
        let a = FieldError::required("a", "");
        assert_eq!(join(&[a.clone(), a.clone()]), "a: Required value");
        assert_eq!(join(&[a, FieldError::required("b", "")]), "[a: Required value, b: Required value]");
    }
}
