//! How an answer is written: as JSON on one line, as JSON for people, or as YAML.

use bytes::Bytes;
use http::{HeaderMap, header::USER_AGENT};
use serde_json::Value;

use super::{
    accept::{self, Accepted, Place},
    answer::JSON,
    query::Query,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Line,
    Indented,
    Yaml,
}

impl Style {
    /// What is asked for by the media type and the address. Programs that show what they get to people get it indented.
    pub(crate) fn of(accepted: Accepted, headers: &HeaderMap, query: &Query) -> Style {
        if accepted.yaml || accepted.pretty {
            return if accepted.yaml { Style::Yaml } else { Style::Indented };
        }
        let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let shows = ["curl", "Wget", "Mozilla/5.0"].iter().any(|program| agent.starts_with(program));
        if query.get("pretty").map_or(shows, |value| matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")) {
            Style::Indented
        } else {
            Style::Line
        }
    }

    /// How a refusal is written, which has one form only. Who wants none that there is gets it for people.
    pub(crate) fn of_refusal(headers: &HeaderMap, query: &Query) -> Style {
        accept::negotiate(headers, Place::Plain).map_or(Style::Indented, |accepted| Style::of(accepted, headers, query))
    }

    pub(crate) fn media(self) -> &'static str {
        match self {
            Style::Yaml => "application/yaml",
            _ => JSON,
        }
    }

    pub(crate) fn print(self, json: Bytes) -> Bytes {
        if self == Style::Line {
            return json;
        }
        let Ok(value) = serde_json::from_slice::<Value>(&json) else { return json };
        match self {
            Style::Yaml => serde_saphyr::to_string(&value).map_or(json, Bytes::from),
            _ => serde_json::to_vec_pretty(&value).map_or(json, Bytes::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("", "", "" => Style::Line; "a program")]
    #[test_case("curl/8.1", "", "" => Style::Indented; "a person")]
    #[test_case("curl/8.1", "", "pretty=false" => Style::Line; "a person who says no")]
    #[test_case("", "", "pretty=true" => Style::Indented; "asked for")]
    #[test_case("", "", "pretty=x" => Style::Line; "no word for it")]
    #[test_case("", "application/json;pretty=1", "" => Style::Indented; "asked for with the type")]
    #[test_case("", "application/yaml", "pretty=true" => Style::Yaml; "yaml")]
    #[test_case("", "application/json;as=Table;v=v1;g=meta.k8s.io", "" => Style::Indented; "a refusal is no table")]
    fn styles(agent: &str, accept: &str, query: &str) -> Style {
        let headers =
            [(USER_AGENT, agent), (http::header::ACCEPT, accept)].map(|(name, text)| (name, text.parse().unwrap()));
        Style::of_refusal(&HeaderMap::from_iter(headers), &Query::parse(query))
    }

    /// What looks like something else must be read back as what it is.
    #[test]
    fn yaml_keeps_what_is_said() {
        let value = serde_json::json!({"a": ["yes", "1", 1, "", null, true, "true", "~", "x: y", "- z", "#", "a\nb", " c ", "0x10", "2001-01-01", "1e3", "é", "'", "\""], "yes": {"1": {}}, "n": []});
        let text = Style::Yaml.print(value.to_string().into());
        assert_eq!(crate::decode::yaml(&text).unwrap().value, value);
    }
}
