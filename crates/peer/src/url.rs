//! Peer URLs, and which of a peer's several URLs is used. Pure.

use std::{fmt, str::FromStr, sync::Arc};

use parking_lot::Mutex;

/// A URL under which a member is reached: scheme, host and port, no path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerUrl {
    scheme: Scheme,
    /// `host:port`.
    authority: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    Http,
    Https,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("peer URL {0:?} does not begin with http:// or https://; the right form is http://HOST:PORT")]
    Scheme(String),
    #[error("peer URL {0:?} has no host and port; the right form is http://HOST:PORT")]
    NoPort(String),
    #[error("peer URL {0:?} has more than host and port; the right form is http://HOST:PORT")]
    Path(String),
    #[error("found no peer URL; a member needs one at least")]
    None,
}

impl PeerUrl {
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub fn authority(&self) -> &str {
        &self.authority
    }
}

impl fmt::Display for PeerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}", self.authority)
    }
}

impl FromStr for PeerUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<PeerUrl, UrlError> {
        // Errors repeat what was found; a header of a stranger may be long.
        let found = || text.chars().take(256).collect::<String>();
        let (scheme, rest) = match text.trim().split_once("://") {
            Some(("http", rest)) => (Scheme::Http, rest),
            Some(("https", rest)) => (Scheme::Https, rest),
            _ => return Err(UrlError::Scheme(found())),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#', '@']) || authority.contains(char::is_whitespace) {
            return Err(UrlError::Path(found()));
        }
        match authority.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                Ok(PeerUrl { scheme, authority: authority.into() })
            }
            _ => Err(UrlError::NoPort(found())),
        }
    }
}

/// All URLs of a member, at least one.
pub fn parse_urls<S: AsRef<str>>(urls: &[S]) -> Result<Vec<PeerUrl>, UrlError> {
    if urls.is_empty() {
        return Err(UrlError::None);
    }
    urls.iter().map(|url| url.as_ref().parse()).collect()
}

/// The URL in use: one is kept until it fails, then the next in order is tried.
#[derive(Debug)]
pub struct UrlPicker {
    state: Mutex<Picked>,
}

#[derive(Debug)]
struct Picked {
    /// Invariant: not empty, and `picked` is an index into it.
    urls: Vec<PeerUrl>,
    picked: usize,
}

impl UrlPicker {
    /// `urls` come from [`parse_urls`], so there is one.
    pub fn new(urls: Vec<PeerUrl>) -> UrlPicker {
        assert!(!urls.is_empty(), "a member without peer URL");
        UrlPicker { state: Mutex::new(Picked { urls, picked: 0 }) }
    }

    pub fn update(&self, urls: Vec<PeerUrl>) {
        assert!(!urls.is_empty(), "a member without peer URL");
        *self.state.lock() = Picked { urls, picked: 0 };
    }

    pub fn pick(&self) -> PeerUrl {
        let state = self.state.lock();
        state.urls[state.picked].clone()
    }

    /// Moves on from `url`, unless another user of this picker has done so already.
    pub fn unreachable(&self, url: &PeerUrl) {
        let mut state = self.state.lock();
        if state.urls[state.picked] == *url {
            state.picked = (state.picked + 1) % state.urls.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("http://10.0.0.1:2380" => Ok("http://10.0.0.1:2380".to_string()))]
    #[test_case("http://a:1/" => Ok("http://a:1".to_string()))]
    #[test_case("https://[::1]:2380" => Ok("https://[::1]:2380".to_string()))]
    #[test_case("unix://a:1" => Err(UrlError::Scheme("unix://a:1".into())))]
    #[test_case("a:1" => Err(UrlError::Scheme("a:1".into())))]
    #[test_case("http://a" => Err(UrlError::NoPort("http://a".into())))]
    #[test_case("http://:1" => Err(UrlError::NoPort("http://:1".into())))]
    #[test_case("http://a:66000" => Err(UrlError::NoPort("http://a:66000".into())))]
    #[test_case("http://a:1/raft" => Err(UrlError::Path("http://a:1/raft".into())))]
    #[test_case("http://u@a:1" => Err(UrlError::Path("http://u@a:1".into())))]
    fn urls(text: &str) -> Result<String, UrlError> {
        text.parse::<PeerUrl>().map(|url| url.to_string())
    }

    #[test]
    fn a_url_is_kept_until_it_fails() {
        let urls = parse_urls(&["http://a:1", "http://a:2"]).unwrap();
        let picker = UrlPicker::new(urls.clone());
        assert_eq!(picker.pick(), urls[0]);
        picker.unreachable(&urls[0]);
        assert_eq!(picker.pick(), urls[1]);
        picker.unreachable(&urls[0]);
        assert_eq!(picker.pick(), urls[1], "a late report about another URL changes nothing");
        picker.unreachable(&urls[1]);
        assert_eq!(picker.pick(), urls[0]);
        let other = parse_urls(&["http://b:1"]).unwrap();
        picker.update(other.clone());
        picker.unreachable(&other[0]);
        assert_eq!(picker.pick(), other[0]);
        assert_eq!(parse_urls::<&str>(&[]), Err(UrlError::None));
    }
}
