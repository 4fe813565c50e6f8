//! From the JSON of `spec.customFeatureGates` to [`Gates`].

use serde_json::{Map, Value};

use crate::{FieldError, FieldErrors, Gate, Gates, Path, PreRelease};

impl Gates {
    /// Parses the value of `customFeatureGates`. `at` is its path in the object, for errors:
    /// `spec.customFeatureGates`.
    ///
    /// # Errors
    ///
    /// Reports every value that has the wrong type, is missing or is not a path.
    /// [`crate::validate`] checks the other rules.
    pub fn parse(stanza: &Value, at: &str) -> Result<Gates, FieldErrors> {
        let (read, errors) = Stanza::read(stanza, at);
        if errors.is_empty() { Ok(read.into_gates()) } else { Err(FieldErrors(errors)) }
    }

    /// Parses the valid gates and ignores the others, for a stored CRD that would fail a later
    /// validation.
    pub fn parse_lenient(stanza: &Value) -> Gates {
        Stanza::read(stanza, "").0.into_gates()
    }
}

/// Gates with the places they stand at, so that what is found later can be told at the right field.
#[derive(Default)]
pub(crate) struct Stanza {
    pub(crate) component: Option<String>,
    pub(crate) gates: Vec<Located>,
}

pub(crate) struct Located {
    pub(crate) gate: Gate,
    /// The field of the gate.
    pub(crate) at: String,
    /// The field of each of `gate.field_paths`.
    pub(crate) paths_at: Vec<String>,
}

impl Stanza {
    pub(crate) fn read(stanza: &Value, at: &str) -> (Stanza, Vec<FieldError>) {
        let mut reader = Reader { errors: Vec::new() };
        let read = reader.stanza(stanza, at).unwrap_or_default();
        (read, reader.errors)
    }

    pub(crate) fn into_gates(self) -> Gates {
        Gates { component: self.component, gates: self.gates.into_iter().map(|located| located.gate).collect() }
    }
}

struct Reader {
    errors: Vec<FieldError>,
}

impl Reader {
    fn stanza(&mut self, stanza: &Value, at: &str) -> Option<Stanza> {
        // Absent and null are the same in Kubernetes' JSON.
        let fields = (!stanza.is_null()).then(|| self.object(stanza, at)).flatten()?;
        let component = self.string(fields, "component", at);
        let list_at = format!("{at}.featureGates");
        let items = self.array(fields.get("featureGates"), &list_at);
        let gates = items.iter().enumerate().filter_map(|(i, item)| self.gate(item, format!("{list_at}[{i}]")));
        Some(Stanza { component, gates: gates.collect() })
    }

    fn gate(&mut self, item: &Value, at: String) -> Option<Located> {
        let fields = self.object(item, &at)?;
        let name = self.string(fields, "name", &at);
        let pre_release = self.pre_release(fields, &at);
        let enabled = self.boolean(fields, "enabled", &at);
        let default = self.boolean(fields, "default", &at);
        let field_deprecation_warning = self.string(fields, "fieldDeprecationWarning", &at);
        let (paths_at, field_paths) = self.paths(fields, &format!("{at}.fieldPaths")).into_iter().unzip();
        if matches!(fields.get("name"), None | Some(Value::Null)) || name.as_deref() == Some("") {
            self.errors.push(FieldError::required(format!("{at}.name"), "an identifier such as FastReplicas"));
        }
        let (name, pre_release) = (name.filter(|name| !name.is_empty())?, pre_release?);
        let gate = Gate { name, pre_release, enabled, default, field_paths, field_deprecation_warning };
        Some(Located { gate, at, paths_at })
    }

    fn pre_release(&mut self, fields: &Map<String, Value>, at: &str) -> Option<PreRelease> {
        let at_stage = format!("{at}.preRelease");
        let supported = PreRelease::ALL.map(PreRelease::as_str);
        match fields.get("preRelease") {
            Some(Value::String(name)) => {
                let stage = PreRelease::from_name(name);
                if stage.is_none() {
                    self.errors.push(FieldError::unsupported(at_stage, name, &supported));
                }
                stage
            }
            None | Some(Value::Null) => {
                let detail = format!("one of {}", supported.join(", "));
                self.errors.push(FieldError::required(at_stage, detail));
                None
            }
            Some(other) => self.refuse(at_stage, other, "string"),
        }
    }

    fn paths(&mut self, fields: &Map<String, Value>, at: &str) -> Vec<(String, Path)> {
        let items = self.array(fields.get("fieldPaths"), at);
        if items.is_empty() && fields.get("fieldPaths").is_none_or(|found| found.is_null() || found.is_array()) {
            self.errors.push(FieldError::required(at, "at least one path such as .spec.replicas"));
        }
        items.iter().enumerate().filter_map(|(i, item)| self.path(item, format!("{at}[{i}]"))).collect()
    }

    fn path(&mut self, item: &Value, at: String) -> Option<(String, Path)> {
        let Value::String(text) = item else { return self.refuse(at, item, "string") };
        match text.parse() {
            Ok(path) => Some((at, path)),
            Err(error) => {
                self.errors.push(FieldError::invalid(at, text.as_str(), format!("{error}")));
                None
            }
        }
    }

    fn object<'a>(&mut self, value: &'a Value, at: &str) -> Option<&'a Map<String, Value>> {
        value.as_object().or_else(|| self.refuse(at.to_owned(), value, "object"))
    }

    fn array<'a>(&mut self, value: Option<&'a Value>, at: &str) -> &'a [Value] {
        match value {
            None | Some(Value::Null) => &[],
            Some(Value::Array(items)) => items,
            Some(other) => self.refuse(at.to_owned(), other, "array").unwrap_or(&[]),
        }
    }

    fn string(&mut self, fields: &Map<String, Value>, name: &str, at: &str) -> Option<String> {
        match fields.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => self.refuse(format!("{at}.{name}"), other, "string"),
        }
    }

    fn boolean(&mut self, fields: &Map<String, Value>, name: &str, at: &str) -> Option<bool> {
        match fields.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(value)) => Some(*value),
            Some(other) => self.refuse(format!("{at}.{name}"), other, "boolean"),
        }
    }

    fn refuse<T>(&mut self, at: String, value: &Value, wanted: &str) -> Option<T> {
        self.errors.push(FieldError::wrong_type(at, value, wanted));
        None
    }
}
