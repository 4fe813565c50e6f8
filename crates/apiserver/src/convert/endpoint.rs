//! Where a webhook is.

use std::fmt;

use serde_json::Value;

use super::TIMEOUT;

#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// As it was given, with a port or without.
    authority: String,
    host: String,
    port: u16,
    path: String,
    /// There is nothing behind a reference to a service here.
    service: Option<String>,
}

/// Kubernetes tells the webhook in the address how long it may take.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}{}", self.authority, self.target())
    }
}

impl Endpoint {
    /// Reads a URL; the error says what is wrong with it, in Kubernetes' words.
    pub(crate) fn parse(url: &str) -> Result<Endpoint, String> {
        const FORM: &str = "; desired format: https://host[/path]";
        let uri: http::Uri = url.parse().map_err(|error| format!("url must be a valid URL: {error}{FORM}"))?;
        if uri.scheme_str() != Some("https") {
            return Err(format!("'https' is the only allowed URL scheme{FORM}"));
        }
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let host = uri.host().unwrap_or_default();
        match () {
            () if host.is_empty() => Err(format!("host must be specified{FORM}")),
            () if authority.contains('@') => Err("user information is not permitted in the URL".to_owned()),
            () if url.contains('#') => Err("fragments are not permitted in the URL".to_owned()),
            () if uri.query().is_some() => Err("query parameters are not permitted in the URL".to_owned()),
            () => {
                let (authority, path) = (authority.to_owned(), uri.path().to_owned());
                let (host, port) = (host.to_owned(), uri.port_u16().unwrap_or(443));
                Ok(Endpoint { authority, host, port, path, service: None })
            }
        }
    }

    /// The address that a service would have.
    pub(crate) fn service(service: &Value) -> Endpoint {
        let text = |key: &str| service[key].as_str().unwrap_or_default();
        let host = format!("{}.{}.svc", text("name"), text("namespace"));
        let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
        let path = if text("path").is_empty() { "/" } else { text("path") };
        let (authority, path) = (format!("{host}:{port}"), path.to_owned());
        Endpoint { authority, host, port, path, service: Some(text("name").to_owned()) }
    }

    /// What to connect to; a host without the brackets of an IPv6 address.
    pub(crate) fn address(&self) -> Result<(&str, u16), String> {
        match &self.service {
            Some(name) => Err(format!("service {name:?} not found")),
            None => Ok((self.host.trim_start_matches('[').trim_end_matches(']'), self.port)),
        }
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn target(&self) -> String {
        format!("{}?timeout={}s", self.path, TIMEOUT.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("https://example.com/convert" => "https://example.com/convert?timeout=30s"; "sound")]
    #[test_case("https://[::1]:8443/" => "https://[::1]:8443/?timeout=30s"; "address")]
    #[test_case("http://example.com/" => "! 'https' is the only allowed URL scheme; desired format: https://host[/path]"; "plain")]
    #[test_case("https://u@example.com/" => "! user information is not permitted in the URL"; "user")]
    #[test_case("https://example.com/?a" => "! query parameters are not permitted in the URL"; "query")]
    #[test_case("https://example.com/#a" => "! fragments are not permitted in the URL"; "fragment")]
    fn reads(url: &str) -> String {
        Endpoint::parse(url).map_or_else(|why| format!("! {why}"), |endpoint| endpoint.to_string())
    }

    #[test]
    fn a_service_is_named_and_not_found() {
        let service =
            Endpoint::service(&serde_json::json!({"name": "s", "namespace": "n", "path": "/c", "port": 8443}));
        assert_eq!(service.to_string(), "https://s.n.svc:8443/c?timeout=30s");
        assert_eq!(service.address(), Err("service \"s\" not found".to_owned()));
        let bare = Endpoint::service(&serde_json::json!({"name": "s", "namespace": "n"}));
        assert_eq!(bare.to_string(), "https://s.n.svc:443/?timeout=30s");
    }
}
