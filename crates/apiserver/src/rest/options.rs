//! Which state of the store a list or watch is about.

use crate::{
    field::FieldError,
    serve::query::Query,
    status::{Name, Result, Status},
    token::Token,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// The newest state, which is not older than this.
    Newest { at_least: i64 },
    /// The state at just this revision.
    Exact(i64),
    /// The next page of a list.
    Continue(Token),
}

#[derive(Clone, Debug)]
pub(super) struct ListOptions {
    pub start: Start,
    pub limit: i64,
}

/// The resource version of a request, if it names one.
pub(super) fn version(query: &Query) -> Result<Option<i64>> {
    let Some(text) = query.get("resourceVersion") else { return Ok(None) };
    let parsed = text.parse::<i64>().ok().filter(|revision| *revision >= 0);
    match parsed {
        Some(revision) => Ok(Some(revision)),
        None => {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let why = if digits { "value out of range" } else { "invalid syntax" };
            let why = format!("strconv.ParseUint: parsing {text:?}: {why}");
            let error = FieldError::invalid("resourceVersion", text, why);
            Err(Status::bad_request(format!("invalid resource version: {error}")))
        }
    }
}

fn refuse(errors: &[FieldError]) -> Result<()> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(&Name::new("meta.k8s.io", "ListOptions"), "", errors)) }
}

const RULE: &str = "resourceVersionMatch";
const INITIAL: &str = "sendInitialEvents";

fn list_faults(query: &Query) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(rule) = query.get(RULE) {
        let version = query.get("resourceVersion");
        if version.is_none() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(RULE, why));
        }
        if query.get("continue").is_some() {
            errors.push(FieldError::forbidden(RULE, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if !matches!(rule, "Exact" | "NotOlderThan") {
            errors.push(FieldError::not_supported(RULE, rule, &["Exact", "NotOlderThan", ""]));
        }
        if rule == "Exact" && version == Some("0") {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(RULE, why));
        }
    }
    if query.choice(INITIAL).is_some() {
        errors.push(FieldError::forbidden(INITIAL, "sendInitialEvents is forbidden for list"));
    }
    errors
}

fn watch_faults(query: &Query) -> Vec<FieldError> {
    let (initial, rule) = (query.choice(INITIAL).is_some(), query.get(RULE));
    let mut errors = Vec::new();
    if initial && rule != Some("NotOlderThan") {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(RULE, why));
    }
    if rule.is_some() && !initial {
        let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        errors.push(FieldError::forbidden(RULE, why));
    }
    if let Some(rule) = rule.filter(|rule| *rule != "NotOlderThan") {
        errors.push(FieldError::not_supported(RULE, rule, &["NotOlderThan"]));
    }
    if query.get("continue").is_some() {
        errors.push(FieldError::forbidden(RULE, "resourceVersionMatch is forbidden when continue is provided"));
    }
    errors
}

pub(super) fn list(query: &Query) -> Result<ListOptions> {
    let limit = query.number("limit")?.unwrap_or_default().max(0);
    query.number("timeoutSeconds")?;
    refuse(&list_faults(query))?;
    let revision = version(query)?;
    if let Some(text) = query.get("continue") {
        if revision.is_some_and(|revision| revision != 0) {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
        }
        return Ok(ListOptions { start: Start::Continue(Token::decode(text)?), limit });
    }
    let start = match (query.get(RULE), revision) {
        (Some("Exact"), Some(revision)) => Start::Exact(revision),
        // Without a rule, pages of a list with a version are of just that version: older clients rely on it.
        (None, Some(revision)) if revision > 0 && limit > 0 => Start::Exact(revision),
        (_, revision) => Start::Newest { at_least: revision.unwrap_or_default() },
    };
    Ok(ListOptions { start, limit })
}

/// How a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchStart {
    /// What is there now as ADDED events; then, if asked for, a mark that this was all.
    State { mark: bool, at_least: i64 },
    /// What happens after this revision.
    After(i64),
}

pub(super) fn watch(query: &Query) -> Result<WatchStart> {
    query.number("limit")?;
    query.number("timeoutSeconds")?;
    refuse(&watch_faults(query))?;
    let (initial, revision) = (query.choice(INITIAL), version(query)?);
    Ok(match (initial, revision) {
        (Some(true), revision) => {
            WatchStart::State { mark: query.flag("allowWatchBookmarks"), at_least: revision.unwrap_or_default() }
        }
        (Some(false), None | Some(0)) => WatchStart::After(0),
        (None, None | Some(0)) => WatchStart::State { mark: false, at_least: 0 },
        (_, Some(revision)) => WatchStart::After(revision),
    })
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("" => "Newest { at_least: 0 }"; "none")]
    #[test_case("resourceVersion=0" => "Newest { at_least: 0 }"; "zero")]
    #[test_case("resourceVersion=7" => "Newest { at_least: 7 }"; "not older")]
    #[test_case("resourceVersion=7&limit=5" => "Exact(7)"; "page of a version")]
    #[test_case("resourceVersion=7&resourceVersionMatch=Exact" => "Exact(7)"; "exact")]
    #[test_case("resourceVersion=0&resourceVersionMatch=Exact" => "422"; "exact zero")]
    #[test_case("resourceVersionMatch=Exact" => "422"; "a rule without version")]
    #[test_case("resourceVersion=x" => "400"; "no number")]
    #[test_case("timeoutSeconds=x" => "400"; "no time")]
    #[test_case("sendInitialEvents=true" => "422"; "initial events of a list")]
    #[test_case("continue=zzz" => "400"; "bad token")]
    fn lists(query: &str) -> String {
        match list(&Query::parse(query)) {
            Ok(options) => format!("{:?}", options.start),
            Err(status) => status.code.to_string(),
        }
    }

    #[test_case("" => "State { mark: false, at_least: 0 }"; "none")]
    #[test_case("resourceVersion=9" => "After(9)"; "after")]
    #[test_case("sendInitialEvents=true&resourceVersionMatch=NotOlderThan" => "State { mark: false, at_least: 0 }"; "initial events")]
    #[test_case("sendInitialEvents&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1" => "State { mark: true, at_least: 0 }"; "initial events and a mark")]
    #[test_case("sendInitialEvents=false&resourceVersionMatch=NotOlderThan" => "After(0)"; "no initial events")]
    #[test_case("sendInitialEvents=true" => "422"; "initial events without rule")]
    #[test_case("resourceVersionMatch=NotOlderThan" => "422"; "a rule for nothing")]
    fn watches(query: &str) -> String {
        match watch(&Query::parse(query)) {
            Ok(start) => format!("{start:?}"),
            Err(status) => status.code.to_string(),
        }
    }
}
