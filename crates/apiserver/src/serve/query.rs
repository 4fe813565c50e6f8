//! Query parameters, and what they mean in every request.

use crate::{
    field::FieldError,
    status::{Name, Result, Status},
};

#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
    /// What Kubernetes calls the options of such a request.
    options: &'static str,
}

/// What becomes of fields nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl Query {
    pub(crate) fn parse(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        });
        Query { pairs: pairs.collect(), options: "" }
    }

    /// For a request of this verb.
    pub(crate) fn for_verb(mut self, verb: &str) -> Query {
        self.options = match verb {
            "create" => "CreateOptions",
            "update" => "UpdateOptions",
            "patch" => "PatchOptions",
            "delete" | "deletecollection" => "DeleteOptions",
            _ => "ListOptions",
        };
        self
    }

    /// Lets through only what has this in a field, beside what else is asked for.
    pub(crate) fn select(&mut self, field: &str, value: &str) {
        let term = format!("{field}={}", value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\="));
        match self.pairs.iter_mut().find(|(name, _)| name == "fieldSelector") {
            Some((_, terms)) => *terms = format!("{terms},{term}"),
            None => self.pairs.push(("fieldSelector".to_owned(), term)),
        }
    }

    fn invalid(&self, error: FieldError) -> Box<Status> {
        Status::invalid(&Name::new("meta.k8s.io", self.options), "", &[error])
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.given(key).filter(|value| !value.is_empty())
    }

    /// All values that are given for something.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The same, where nothing is something too.
    pub(crate) fn given(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Whether something is asked for.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.choice(key) == Some(true)
    }

    /// What is said about something that can be on or off, if anything is: all but `false` and `0` is yes, also nothing.
    pub(crate) fn choice(&self, key: &str) -> Option<bool> {
        self.given(key).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<i64>> {
        let Some(text) = self.get(key) else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(error) => {
                use std::num::IntErrorKind::{NegOverflow, PosOverflow};
                let large = matches!(error.kind(), PosOverflow | NegOverflow);
                let why = if large { "value out of range" } else { "invalid syntax" };
                Err(Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}")))
            }
        }
    }

    /// What is wrong with the options of a write.
    pub(crate) fn write_faults(&self) -> Vec<FieldError> {
        self.dry_run_fault().into_iter().chain(self.field_validation_fault()).collect()
    }

    pub(crate) fn dry_run(&self) -> Result<bool> {
        match self.dry_run_fault() {
            None => Ok(self.pairs.iter().any(|(name, _)| name == "dryRun")),
            Some(fault) => Err(self.invalid(fault)),
        }
    }

    fn dry_run_fault(&self) -> Option<FieldError> {
        // An empty one is none that we know: whoever writes it does not want to write for good.
        let given: Vec<&str> =
            self.pairs.iter().filter(|(name, _)| name == "dryRun").map(|(_, value)| &**value).collect();
        let known = given.iter().all(|value| *value == "All");
        (!known).then(|| FieldError::not_supported("dryRun", given, &["All"]))
    }

    pub(crate) fn field_validation(&self) -> Result<FieldValidation> {
        match self.get("fieldValidation") {
            None | Some("Warn") => Ok(FieldValidation::Warn),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some(_) => Err(self.field_validation_fault().map_or_else(Status::rejected, |fault| self.invalid(fault))),
        }
    }

    fn field_validation_fault(&self) -> Option<FieldError> {
        let known = ["", "Ignore", "Strict", "Warn"];
        let given = self.get("fieldValidation").filter(|given| !known.contains(given))?;
        Some(FieldError::not_supported("fieldValidation", given, &known))
    }
}

/// The same for a path, where a plus is a plus.
pub(crate) fn decode_path(text: &str) -> String {
    decode(&text.replace('+', "%2B"))
}

/// Percent signs and pluses undone; what is not UTF-8 afterwards is replaced, as no name of ours can contain it.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = (bytes[at] == b'%').then(|| bytes.get(at + 1..at + 3)).flatten();
        match escape.and_then(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(if bytes[at] == b'+' { b' ' } else { bytes[at] });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("" => None; "not said")]
    #[test_case("watch" => Some(true); "the name alone")]
    #[test_case("watch=" => Some(true); "no value")]
    #[test_case("watch=x" => Some(true); "any value")]
    #[test_case("watch=00" => Some(true); "two digits")]
    #[test_case("watch=1" => Some(true); "one")]
    #[test_case("watch=0" => Some(false); "zero")]
    #[test_case("watch=False" => Some(false); "false in any case")]
    #[test_case("watch=false&watch=true" => Some(false); "the first counts")]
    fn choices(text: &str) -> Option<bool> {
        Query::parse(text).choice("watch")
    }

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse("fieldSelector=metadata.name%3Da&watch=true&x=a+b&limit=&bad=%zz&dryRun=Some");
        assert_eq!(query.get("fieldSelector"), Some("metadata.name=a"));
        assert_eq!((query.get("x"), query.get("limit"), query.get("bad")), (Some("a b"), None, Some("%zz")));
        assert!(query.flag("watch"));
        assert!(query.dry_run().is_err());
        let dry = |text: &str| Query::parse(text).dry_run().ok();
        assert_eq!(["", "dryRun=All", "dryRun=All&dryRun=All"].map(dry), [Some(false), Some(true), Some(true)]);
        assert_eq!(["dryRun=", "dryRun", "dryRun=All&dryRun=x"].map(dry), [None; 3]);
    }
}
