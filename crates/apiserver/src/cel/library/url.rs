//! Absolute URLs and absolute paths.

use std::{collections::BTreeMap, sync::Arc};

use super::{GLOBAL, MEMBER, Row, mismatch};
use crate::cel::{
    Error,
    value::{Key, Map, Value},
};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

pub(super) const ROWS: &[Row] = &[
    ("url", GLOBAL, "string", "kubernetes.URL", |args, meter| match args {
        [Value::String(text)] => {
            meter.charge_text(text.len())?;
            let failed = |why| {
                Error::other(format!("URL parse error during conversion from string: parse {:?}: {why}", &**text))
            };
            Ok(Value::Url(Arc::new(Url::parse(text).map_err(failed)?)))
        }
        _ => mismatch(),
    }),
    ("isURL", GLOBAL, "string", "bool", |args, meter| match args {
        [Value::String(text)] => {
            meter.charge_text(text.len())?;
            Ok(Value::Bool(Url::parse(text).is_ok()))
        }
        _ => mismatch(),
    }),
    ("getScheme", MEMBER, "kubernetes.URL", "string", |args, _| part(args, |url| url.scheme.clone())),
    ("getHost", MEMBER, "kubernetes.URL", "string", |args, _| part(args, |url| url.host.clone())),
    ("getHostname", MEMBER, "kubernetes.URL", "string", |args, _| part(args, |url| url.split_host().0)),
    ("getPort", MEMBER, "kubernetes.URL", "string", |args, _| part(args, |url| url.split_host().1)),
    ("getEscapedPath", MEMBER, "kubernetes.URL", "string", |args, _| part(args, |url| url.path.clone())),
    ("getQuery", MEMBER, "kubernetes.URL", "map(string,list(string))", |args, _| match args {
        [Value::Url(url)] => Ok(url.query()),
        _ => mismatch(),
    }),
];

fn part<'a>(args: &[Value<'a>], of: fn(&Url) -> String) -> Result<Value<'a>, Error> {
    match args {
        [Value::Url(url)] => Ok(Value::text(of(url))),
        _ => mismatch(),
    }
}

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Url, &'static str> {
        if text.is_empty() {
            return Err("empty url");
        }
        if text.chars().any(|c| c.is_ascii_control()) {
            return Err("net/url: invalid control character in URL");
        }
        let text = text.split('#').next().unwrap_or_default();
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_lowercase(), rest),
            Some(("", _)) => return Err("missing protocol scheme"),
            _ => (String::new(), text),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if !rest.starts_with('/') {
            // `mailto:a@b` is a URL without a host or a path.
            let opaque = Url { scheme, host: String::new(), path: String::new(), query: query.to_owned() };
            return if opaque.scheme.is_empty() { Err("invalid URI for request") } else { Ok(opaque) };
        }
        let authority = if scheme.is_empty() { None } else { rest.strip_prefix("//") };
        let (host, path) = match authority {
            Some(authority) => {
                let end = authority.find('/').unwrap_or(authority.len());
                (host(&authority[..end])?, &authority[end..])
            }
            None => (String::new(), rest),
        };
        check_escapes(path)?;
        Ok(Url { scheme, host, path: escape(path), query: query.to_owned() })
    }

    /// The host without brackets, and the port.
    fn split_host(&self) -> (String, String) {
        let (host, port) = match self.host.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port),
            _ => (self.host.as_str(), ""),
        };
        (host.trim_start_matches('[').trim_end_matches(']').to_owned(), port.to_owned())
    }

    fn query<'a>(&self) -> Value<'a> {
        let mut found: BTreeMap<String, Vec<Value<'a>>> = BTreeMap::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Some(key), Some(value)) = (unescape(key), unescape(value)) {
                found.entry(key).or_default().push(Value::text(value));
            }
        }
        let map = found.into_iter().map(|(key, values)| (Key::String(key), Value::list(values)));
        Value::Map(Map::Made(Arc::new(map.collect())))
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn host(authority: &str) -> Result<String, &'static str> {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or("missing ']' in host")?.1,
        None => host.find(':').map_or("", |index| &host[index..]),
    };
    let sound = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    if !sound {
        return Err("invalid port after host");
    }
    if host.chars().any(|c| matches!(c, ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')) {
        return Err("invalid character in host name");
    }
    Ok(host.to_owned())
}

fn check_escapes(path: &str) -> Result<(), &'static str> {
    let sound = |after: &str| after.len() >= 2 && after.bytes().take(2).all(|b| b.is_ascii_hexdigit());
    if path.split('%').skip(1).all(sound) { Ok(()) } else { Err("invalid URL escape") }
}

/// What may not stand in a path as it is.
fn escape(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@/%[]".contains(&b);
    path.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                out.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).ok()
}
