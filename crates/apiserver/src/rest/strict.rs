//! Fields that nobody knows and fields that come twice: refused, warned of or passed over, as the caller asks for (`fieldValidation`).

use serde_json::Value;

use crate::{
    decode::Twice,
    field::FieldError,
    form::{self, Kind},
    serve::{answer::Warnings, query::FieldValidation},
    status::{Name, Result, Status},
};

/// In which form an object was sent: what is said of it differs.
pub(super) enum Form<'a> {
    /// As a whole.
    Whole(&'a Twice),
    /// As a patch, with what is wrong with the patch itself, and the object it made.
    Patch { faults: &'a [String], made: &'a (dyn Fn() -> Value + Sync) },
    /// As a configuration to apply.
    Apply(&'a Twice),
}

/// `unknown` are the paths of fields that were taken out.
pub(super) fn check(
    kind: &Kind<'_>,
    form: &Form<'_>,
    unknown: &[String],
    mode: FieldValidation,
    warnings: &mut Warnings,
) -> Result<()> {
    // A configuration for a custom resource is held to its type, and what goes after that is not told.
    let unknown = if matches!(form, Form::Apply(_)) && !kind.typed { &[] } else { unknown };
    // What has a type looks no further into a field that it does not know.
    let passed = if kind.typed { unknown } else { &[] };
    let unknown = unknown.iter().map(|path| format!("unknown field {path:?}"));
    match mode {
        FieldValidation::Ignore => Ok(()),
        FieldValidation::Warn => {
            form.told(passed).into_iter().chain(unknown).for_each(|text| warnings.add(text));
            Ok(())
        }
        FieldValidation::Strict => {
            let faults: Vec<String> = form.faults(passed).into_iter().chain(unknown).collect();
            if faults.is_empty() { Ok(()) } else { Err(form.refusal(kind, &faults)) }
        }
    }
}

impl Form<'_> {
    /// `passed` are fields whose contents nobody has looked at.
    fn told(&self, passed: &[String]) -> Vec<String> {
        match self {
            Form::Whole(twice) => twice.beside(passed).told(),
            Form::Apply(twice) => twice.told(),
            Form::Patch { faults, .. } => faults.to_vec(),
        }
    }

    fn faults(&self, passed: &[String]) -> Vec<String> {
        match self {
            Form::Whole(twice) => twice.beside(passed).faults(),
            Form::Apply(twice) => twice.faults(),
            Form::Patch { faults, .. } => faults.to_vec(),
        }
    }

    /// Kubernetes' words for each form.
    fn refusal(&self, kind: &Kind<'_>, faults: &[String]) -> Box<Status> {
        let why = format!("strict decoding error: {}", faults.join(", "));
        match self {
            Form::Apply(twice) if **twice != Twice::default() => {
                let why = twice.faults().join(", ");
                Status::bad_request(format!("error strict decoding YAML: error converting YAML to JSON: {why}"))
            }
            Form::Patch { made, .. } => {
                let error = FieldError::invalid("patch", made().to_string(), why);
                Status::invalid(&Name::new("", ""), "", &[error])
            }
            Form::Whole(_) | Form::Apply(_) => form::unfit(kind.api_version, kind.kind, kind.kind, &why),
        }
    }
}
