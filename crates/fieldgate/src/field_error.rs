//! Errors about one field of an object, in the words and order that Kubernetes uses for them.

use std::fmt;

use serde_json::Value;

/// The kind of an error about a field. [`FieldError`] prints it as Kubernetes' `field.Error` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A required field is absent or empty.
    Required,
    /// The value must be unique and occurs twice.
    Duplicate,
    /// The value has the right type and is malformed or out of bounds.
    Invalid,
    /// The value has the wrong JSON type. Prints like [`Fault::Invalid`].
    TypeInvalid,
    /// The value is not one of an enumerated set.
    NotSupported,
    /// The field must not be set in this context.
    Forbidden,
    /// The value has too many bytes.
    TooLong,
    /// The list has too many items.
    TooMany,
}

impl Fault {
    /// The `reason` of a cause in a Kubernetes `Status`, such as `FieldValueRequired`.
    pub fn reason(self) -> &'static str {
        match self {
            Fault::Required => "FieldValueRequired",
            Fault::Duplicate => "FieldValueDuplicate",
            Fault::Invalid => "FieldValueInvalid",
            Fault::TypeInvalid => "FieldValueTypeInvalid",
            Fault::NotSupported => "FieldValueNotSupported",
            Fault::Forbidden => "FieldValueForbidden",
            Fault::TooLong => "FieldValueTooLong",
            Fault::TooMany => "FieldValueTooMany",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Fault::Required => "Required value",
            Fault::Duplicate => "Duplicate value",
            Fault::Invalid | Fault::TypeInvalid => "Invalid value",
            Fault::NotSupported => "Unsupported value",
            Fault::Forbidden => "Forbidden",
            Fault::TooLong => "Too long",
            Fault::TooMany => "Too many",
        }
    }
}

/// An error about one field, with a hint how to correct it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{field}: {}", self.body())]
pub struct FieldError {
    /// Path of the field, such as `spec.customFeatureGates.featureGates[0].name`.
    pub field: String,
    /// The kind of the error.
    pub fault: Fault,
    /// The faulty value. `None` for kinds whose message does not show it, such as
    /// [`Fault::Required`].
    pub value: Option<Value>,
    /// The explanation at the end of the message. May be empty.
    pub detail: String,
}

impl FieldError {
    /// The error without its field: the `message` of a cause in a Kubernetes `Status`.
    pub fn body(&self) -> String {
        let mut text = self.fault.words().to_owned();
        if let Some(value) = &self.value {
            text = format!("{text}: {value}");
        }
        if !self.detail.is_empty() {
            text = format!("{text}: {}", self.detail);
        }
        text
    }

    pub(crate) fn required(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), fault: Fault::Required, value: None, detail: detail.into() }
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), fault: Fault::Forbidden, value: None, detail: detail.into() }
    }

    pub(crate) fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), fault: Fault::Invalid, value: Some(value.into()), detail: detail.into() }
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> FieldError {
        let value = Some(value.into());
        FieldError { field: field.into(), fault: Fault::Duplicate, value, detail: String::new() }
    }

    pub(crate) fn wrong_type(field: impl Into<String>, value: &Value, wanted: &str) -> FieldError {
        let detail = format!("must be of type {wanted}");
        FieldError { field: field.into(), fault: Fault::TypeInvalid, value: Some(value.clone()), detail }
    }

    pub(crate) fn unsupported(field: impl Into<String>, value: &str, supported: &[&str]) -> FieldError {
        let quoted: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let detail = format!("supported values: {}", quoted.join(", "));
        FieldError { field: field.into(), fault: Fault::NotSupported, value: Some(value.into()), detail }
    }

    pub(crate) fn too_long(field: impl Into<String>, bytes_max: usize) -> FieldError {
        let detail = format!("may not be more than {bytes_max} bytes");
        FieldError { field: field.into(), fault: Fault::TooLong, value: None, detail }
    }

    pub(crate) fn too_many(field: impl Into<String>, found: usize, max: usize) -> FieldError {
        let detail = format!("must have at most {max} items");
        FieldError { field: field.into(), fault: Fault::TooMany, value: Some(found.into()), detail }
    }
}

/// Errors about fields, never empty. Prints as Kubernetes' aggregate: several in brackets,
/// separated by commas.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub struct FieldErrors(pub Vec<FieldError>);

impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return only.fmt(f);
        }
        let texts: Vec<String> = self.0.iter().map(FieldError::to_string).collect();
        write!(f, "[{}]", texts.join(", "))
    }
}
