//! Which form of an answer a client wants.

use http::{HeaderMap, header::ACCEPT};

use crate::status::{Result, Status};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Object,
    Table,
    /// Metadata alone, for those that do not care about the rest.
    Metadata,
}

struct Media<'a> {
    name: &'a str,
    params: Vec<(&'a str, &'a str)>,
}

impl Media<'_> {
    fn param(&self, key: &str) -> Option<&str> {
        self.params.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn is_json(&self) -> bool {
        matches!(self.name, "application/json" | "application/*" | "*/*")
    }
}

fn medias(headers: &HeaderMap) -> Vec<Media<'_>> {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let medias = values.flat_map(|value| value.split(',')).map(|text| {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        Media { name, params: parts.filter_map(|part| part.split_once('=')).collect() }
    });
    medias.filter(|media| !media.name.is_empty()).collect()
}

/// The first form that is asked for and that we have.
pub fn form(headers: &HeaderMap) -> Result<Form> {
    let medias = medias(headers);
    if medias.is_empty() {
        return Ok(Form::Object);
    }
    for media in medias.iter().filter(|media| media.is_json()) {
        let ours = media.param("g").is_none_or(|group| group == "meta.k8s.io")
            && media.param("v").is_none_or(|version| version == "v1");
        match media.param("as") {
            None => return Ok(Form::Object),
            Some("Table") if ours => return Ok(Form::Table),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") if ours => return Ok(Form::Metadata),
            Some(_) => {}
        }
    }
    Err(Status::not_acceptable(&["application/json"]))
}

/// Whether a client asks for one of these, and for nothing of ours before it.
pub fn names(headers: &HeaderMap, wanted: &[&str]) -> bool {
    let found = medias(headers).into_iter().find(|media| media.is_json() || wanted.contains(&media.name));
    found.is_some_and(|media| wanted.contains(&media.name))
}

/// Whether a client reads all of discovery in one answer (`apidiscovery.k8s.io/v2`).
pub fn aggregated(headers: &HeaderMap) -> bool {
    let first = medias(headers).into_iter().find(|media| {
        media.is_json()
            && matches!((media.param("g"), media.param("v")), (None, None) | (Some("apidiscovery.k8s.io"), Some("v2")))
    });
    first.is_some_and(|media| media.param("as") == Some("APIGroupDiscoveryList"))
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn headers(text: &str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT, text.parse().unwrap())])
    }

    #[test_case("application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json" => Some(Form::Table); "kubectl get")]
    #[test_case("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" => Some(Form::Metadata); "metadata")]
    #[test_case("application/vnd.kubernetes.protobuf,application/json" => Some(Form::Object); "protobuf or json")]
    #[test_case("application/json, */*" => Some(Form::Object); "json or any")]
    #[test_case("application/vnd.kubernetes.protobuf" => None; "protobuf only")]
    #[test_case("application/json;as=Table;v=v1beta1;g=meta.k8s.io" => None; "an old table only")]
    fn forms(accept: &str) -> Option<Form> {
        form(&headers(accept)).ok()
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
