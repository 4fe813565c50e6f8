//! Which form of an answer a client wants, as Kubernetes reads its Accept header.

use http::{HeaderMap, header::ACCEPT};

use crate::status::{Result, Status};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Object,
    Table(Meta),
    /// Metadata alone, for those that do not care about the rest.
    Metadata(Meta),
}

/// The versions of `meta.k8s.io`, in which both have the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meta {
    V1,
    V1beta1,
}

impl Meta {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Meta::V1 => "meta.k8s.io/v1",
            Meta::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What an answer is to be, and how it is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub form: Form,
    pub yaml: bool,
    /// Asked for with the media type; there are other ways.
    pub pretty: bool,
}

/// What Kubernetes can answer in, and ours but for the last.
pub(crate) const ANSWERS: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAMS: [&str; 2] = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// Which answers are at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Answers are what they are, as in discovery and refusals.
    Plain,
    /// Objects can be shown in other forms.
    Objects,
    /// Questions are objects that nobody has made a table for.
    Questions,
}

/// The first form that is asked for and that we have.
pub(crate) fn negotiate(headers: &HeaderMap, place: Place) -> Result<Accepted> {
    let header = first(headers);
    if header.is_empty() {
        return Ok(Accepted { form: Form::Object, yaml: false, pretty: false });
    }
    let clauses = clauses(header);
    let found = clauses.iter().find_map(|clause| ["json", "yaml"].iter().find_map(|answer| clause.take(answer, place)));
    found.ok_or_else(|| Status::not_acceptable(&ANSWERS))
}

/// Which answers built-in kinds have.
pub(crate) fn answers(verb: &str) -> Vec<&'static str> {
    let streams = if matches!(verb, "list" | "watch") { &STREAMS[..] } else { &[] };
    [&ANSWERS, streams].concat()
}

/// Built-in kinds are behind routes, which look at the header for themselves: by name, or for anything at all.
pub(crate) fn check_route(headers: &HeaderMap, answers: &[&str]) -> Result<()> {
    let header = first(headers);
    let name = |part: &str| part.split(';').next().unwrap_or_default().trim_matches(' ').to_owned();
    let known = |name: String| name == "*/*" || answers.contains(&name.as_str());
    if header.is_empty() || header.split(',').map(name).any(known) {
        Ok(())
    } else {
        Err(Status::no_representation(answers))
    }
}

/// Whether JSON is asked for, in whatever form.
pub(crate) fn takes_json(headers: &HeaderMap) -> bool {
    let header = first(headers);
    header.is_empty() || clauses(header).iter().any(|clause| clause.matches("json"))
}

/// What is told as it happens cannot be told in YAML.
pub(crate) fn no_stream() -> Box<Status> {
    Status::not_acceptable(&STREAMS)
}

/// Whether a client asks for one of these, and for nothing of ours before it.
pub(crate) fn names(headers: &HeaderMap, wanted: &[&str]) -> bool {
    let clauses = clauses(first(headers));
    let found = clauses.iter().find(|clause| clause.matches("json") || wanted.contains(&clause.name().as_str()));
    found.is_some_and(|clause| wanted.contains(&clause.name().as_str()))
}

/// Whether a client reads all of discovery in one answer (`apidiscovery.k8s.io/v2`).
pub(crate) fn aggregated(headers: &HeaderMap) -> bool {
    let clauses = clauses(first(headers));
    let first = clauses.iter().find(|clause| {
        clause.matches("json")
            && matches!(
                (clause.param("g"), clause.param("v")),
                (None, None) | (Some("apidiscovery.k8s.io"), Some("v2"))
            )
    });
    first.is_some_and(|clause| clause.param("as") == Some("APIGroupDiscoveryList"))
}

/// Of several headers Kubernetes reads one.
fn first(headers: &HeaderMap) -> &str {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    weight: f32,
    params: Vec<(&'a str, &'a str)>,
}

/// What is asked for, the dearest first. What is no media type is passed over.
fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut sorted: Vec<Clause<'_>> = Vec::new();
    for clause in header.split(',').filter_map(clause) {
        // The order is none in which all things have one place, so it is made in Kubernetes' way: by swaps from the end.
        let at = sorted.iter().rposition(|other| !clause.before(other)).map_or(0, |at| at + 1);
        sorted.insert(at, clause);
    }
    sorted
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = text.trim_matches(' ').split(';');
    let media = parts.next()?;
    let (kind, subtype) = match media.split_once('/').unwrap_or((media, "")) {
        ("*", "") => ("*", "*"),
        (_, subtype) if subtype.is_empty() || subtype.contains('/') => return None,
        both => both,
    };
    let pairs =
        parts.filter_map(|part| part.split_once('=')).filter(|(_, value)| !value.is_empty() && !value.contains('='));
    let (weights, params): (Vec<_>, Vec<_>) =
        pairs.map(|(key, value)| (key.trim_matches(' '), value)).partition(|(key, _)| *key == "q");
    let weight = weights.last().map_or(1.0, |(_, value)| value.parse().unwrap_or(0.0));
    let params = params.into_iter().map(|(key, value)| (key, value.trim_matches(' '))).collect();
    Some(Clause { kind: kind.trim_matches(' '), subtype: subtype.trim_matches(' '), weight, params })
}

impl Clause<'_> {
    fn before(&self, other: &Clause<'_>) -> bool {
        self.weight > other.weight
            || self.kind != "*" && other.kind == "*"
            || self.subtype != "*" && other.subtype == "*"
    }

    fn name(&self) -> String {
        format!("{}/{}", self.kind, self.subtype)
    }

    fn param(&self, key: &str) -> Option<&str> {
        self.params.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn matches(&self, answer: &str) -> bool {
        match (self.kind, self.subtype) {
            ("*", "*") | ("application", "*") => true,
            ("application", subtype) => subtype == answer,
            _ => false,
        }
    }

    /// What this asks for of an answer in JSON or YAML, if that can be had.
    fn take(&self, answer: &str, place: Place) -> Option<Accepted> {
        let yaml = answer == "yaml";
        let streams = self.param("stream").is_none_or(|stream| stream == "watch" && !yaml);
        let server_version = self.param("sv").is_none_or(|version| version == "v1" && place != Place::Plain);
        let form = self.form(place).filter(|_| self.matches(answer) && streams && server_version)?;
        Some(Accepted { form, yaml, pretty: self.param("pretty") == Some("1") })
    }

    fn form(&self, place: Place) -> Option<Form> {
        let asked = ["as", "g", "v"].map(|key| self.param(key));
        if asked == [None; 3] {
            return Some(Form::Object);
        }
        let meta = match asked {
            _ if place == Place::Plain => return None,
            [_, Some("meta.k8s.io"), Some("v1")] => Meta::V1,
            [_, Some("meta.k8s.io"), Some("v1beta1")] => Meta::V1beta1,
            _ => return None,
        };
        match asked[0]? {
            "Table" if place == Place::Questions => None,
            "Table" => Some(Form::Table(meta)),
            "PartialObjectMetadata" | "PartialObjectMetadataList" => Some(Form::Metadata(meta)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn headers(text: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, text.parse().unwrap())])
    }

    #[test_case("application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json" => Some(Form::Table(Meta::V1)); "kubectl get")]
    #[test_case("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" => Some(Form::Metadata(Meta::V1)); "metadata")]
    #[test_case("application/vnd.kubernetes.protobuf,application/json" => Some(Form::Object); "protobuf or json")]
    #[test_case("application/json, */*" => Some(Form::Object); "json or any")]
    #[test_case("*/*, application/json;as=Table;v=v1;g=meta.k8s.io" => Some(Form::Table(Meta::V1)); "any, but better this")]
    #[test_case("application/json;q=0.5, application/json;as=Table;v=v1;g=meta.k8s.io" => Some(Form::Table(Meta::V1)); "less of the first")]
    #[test_case("application/json;q=0" => Some(Form::Object); "none is better than nothing")]
    #[test_case("application/json;stream=watch" => Some(Form::Object); "a stream")]
    #[test_case("application/json;stream=x" => None; "another stream")]
    #[test_case("application/json;sv=v1" => Some(Form::Object); "a version of the server")]
    #[test_case("application/json;sv=v2" => None; "no version of the server")]
    #[test_case("application/json;as=Table" => None; "a table of no version")]
    #[test_case("application/json;v=v1;g=meta.k8s.io" => None; "a version of nothing")]
    #[test_case("application/vnd.kubernetes.protobuf" => None; "protobuf only")]
    #[test_case("application/json;as=Table;v=v1beta1;g=meta.k8s.io" => Some(Form::Table(Meta::V1beta1)); "an old table only")]
    #[test_case("application/json;as=Table;v=v2;g=meta.k8s.io" => None; "a table to come")]
    #[test_case("*" => Some(Form::Object); "a star")]
    #[test_case("application" => None; "half a name")]
    #[test_case(", ," => None; "commas")]
    #[test_case("" => Some(Form::Object); "nothing")]
    fn forms(accept: &str) -> Option<Form> {
        negotiate(&headers(accept), Place::Objects).ok().map(|accepted| accepted.form)
    }

    #[test_case("application/yaml" => Some(true))]
    #[test_case("application/json" => Some(false))]
    #[test_case("application/json;as=Table;v=v1;g=meta.k8s.io" => None; "no form of its own")]
    #[test_case("application/json;as=Table;v=v1;g=meta.k8s.io,application/yaml" => Some(true); "what is left")]
    fn plain(accept: &str) -> Option<bool> {
        negotiate(&headers(accept), Place::Plain).ok().map(|accepted| accepted.yaml)
    }

    #[test_case("application/*", "get" => "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"; "half a wildcard")]
    #[test_case("x", "list" => "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"; "a list")]
    #[test_case("text/html, application/json ;as=x", "get" => ""; "by name alone")]
    #[test_case("text/html;q=0.9, */*;q=0.8", "get" => ""; "a browser")]
    fn routes(accept: &str, verb: &str) -> String {
        check_route(&headers(accept), &answers(verb)).map_or_else(|status| status.message, |()| String::new())
    }

    #[test]
    fn aggregated_discovery_is_for_those_who_know_v2() {
        let new = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                   application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert!(aggregated(&headers(new)));
        assert!(!aggregated(&headers(
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
        )));
        assert!(!aggregated(&headers("application/json")));
    }
}
