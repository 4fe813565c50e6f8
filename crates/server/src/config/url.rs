//! URLs to listen on or to advertise: `http://host:port`, `unix://path`, as etcd reads them.

use std::fmt;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Url {
    /// As it was written, which is also how it is stored and shown.
    text: String,
    pub scheme: Scheme,
    /// Host without brackets; for unix sockets the path or address after `unix://`.
    pub host: String,
    /// 0 for unix sockets.
    pub port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    Http,
    Https,
    Unix,
    Unixs,
}

/// Why a text is no URL for us; the words are etcd's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("URL scheme must be http, https, unix, or unixs: {0}")]
    Scheme(String),
    #[error(r#"URL address does not have the form "host:port": {0}"#)]
    Address(String),
    #[error("URL must not contain a path: {0}")]
    Path(String),
    #[error("parse {url:?}: {reason}")]
    Parse { url: String, reason: String },
}

impl Url {
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        let text = text.trim();
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(UrlError::Scheme(text.to_owned()));
        };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            "unix" => Scheme::Unix,
            "unixs" => Scheme::Unixs,
            _ => return Err(UrlError::Scheme(text.to_owned())),
        };
        let (host, port) = match scheme {
            Scheme::Unix | Scheme::Unixs => (rest.to_owned(), 0),
            Scheme::Http | Scheme::Https => parse_authority(text, rest)?,
        };
        Ok(Url { text: text.to_owned(), scheme, host, port })
    }

    /// Comma-separated URLs, sorted and each once.
    pub fn parse_list(text: &str) -> Result<Vec<Url>, UrlError> {
        let mut urls = text.split(',').map(Url::parse).collect::<Result<Vec<_>, _>>()?;
        urls.sort();
        urls.dedup();
        Ok(urls)
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn is_unix(&self) -> bool {
        matches!(self.scheme, Scheme::Unix | Scheme::Unixs)
    }

    pub fn is_tls(&self) -> bool {
        matches!(self.scheme, Scheme::Https | Scheme::Unixs)
    }

    /// Whether a listener gets its port from the system, and an advertised URL its port from a listener.
    pub fn has_port_zero(&self) -> bool {
        self.port == 0 && !self.is_unix()
    }

    /// The same URL with another host and port.
    pub fn with_host(&self, host: &str, port: u16) -> Url {
        let scheme = self.text.split("://").next().unwrap_or_default();
        let shown = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        Url { text: format!("{scheme}://{shown}:{port}"), scheme: self.scheme, host: host.to_owned(), port }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

pub(super) fn join(urls: &[Url]) -> String {
    urls.iter().map(Url::as_str).collect::<Vec<_>>().join(",")
}

fn parse_authority(url: &str, rest: &str) -> Result<(String, u16), UrlError> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let reason = |reason: String| UrlError::Parse { url: url.to_owned(), reason };
    let (host, port) = match authority.strip_prefix('[') {
        Some(inner) => {
            let (host, after) = inner.split_once(']').ok_or_else(|| reason("missing ']' in host".to_owned()))?;
            (host, after.strip_prefix(':'))
        }
        None => match authority.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let Some(port) = port.filter(|_| authority.starts_with('[') || !host.contains(':')) else {
        return Err(UrlError::Address(url.to_owned()));
    };
    if !path.is_empty() {
        return Err(UrlError::Path(url.to_owned()));
    }
    let number = match port {
        "" => 0,
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().map_err(|_| reason(format!("port {digits} is above 65535")))?
        }
        _ => return Err(reason(format!("invalid port {:?} after host", format!(":{port}")))),
    };
    Ok((host.to_owned(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_urls() {
        for (text, scheme, host, port) in [
            ("http://localhost:2379", Scheme::Http, "localhost", 2379),
            ("https://10.0.0.1:1", Scheme::Https, "10.0.0.1", 1),
            ("http://[::1]:2379", Scheme::Http, "::1", 2379),
            (" http://a:0 ", Scheme::Http, "a", 0),
            ("http://:2379", Scheme::Http, "", 2379),
            ("unix:///run/x.sock", Scheme::Unix, "/run/x.sock", 0),
            ("unix://localhost:17", Scheme::Unix, "localhost:17", 0),
        ] {
            let url = Url::parse(text).unwrap_or_else(|err| panic!("{text}: {err}"));
            assert_eq!((url.scheme, url.host.as_str(), url.port), (scheme, host, port), "{text}");
            assert_eq!(url.as_str(), text.trim());
        }
    }

    #[test]
    fn bad_urls() {
        for (text, message) in [
            ("", "URL scheme must be http, https, unix, or unixs: "),
            ("localhost:2379", "URL scheme must be http, https, unix, or unixs: localhost:2379"),
            ("http://localhost", "URL address does not have the form \"host:port\": http://localhost"),
            ("http://::1:1", "URL address does not have the form \"host:port\": http://::1:1"),
            ("http://a:1/p", "URL must not contain a path: http://a:1/p"),
            ("http://[::1", "parse \"http://[::1\": missing ']' in host"),
            ("http://a:b", "parse \"http://a:b\": invalid port \":b\" after host"),
            ("http://a:99999", "parse \"http://a:99999\": port 99999 is above 65535"),
        ] {
            assert_eq!(Url::parse(text).map_err(|err| err.to_string()), Err(message.to_owned()));
        }
    }

    #[test]
    fn lists_are_sorted_and_each_once() {
        let urls = Url::parse_list("http://b:1, http://a:1,http://b:1").expect("valid list");
        assert_eq!(join(&urls), "http://a:1,http://b:1");
    }

    #[test]
    fn other_host() {
        let url = Url::parse("http://localhost:2379").expect("valid url");
        assert_eq!(url.with_host("10.1.2.3", 4001).as_str(), "http://10.1.2.3:4001");
        assert_eq!(url.with_host("fe80::1", 4001).as_str(), "http://[fe80::1]:4001");
    }
}
