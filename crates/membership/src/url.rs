//! Whether two lists of peer URLs mean the same places, as etcd compares them.
//!
//! Only scheme, host with port, and path count. Names are resolved only where the texts differ, by a function the
//! caller gives, so that this crate asks no name server itself.

use std::net::IpAddr;

/// Finds the address behind `host:port`, as `ip:port`; the error is the resolver's own text.
pub type Resolve<'a> = &'a mut dyn FnMut(&str) -> Result<String, String>;

/// Compares the lists without regard to order. The error says why they differ, in etcd's words.
pub fn check_urls_equal(a: &[String], b: &[String], resolve: Resolve<'_>) -> Result<(), String> {
    if a.len() != b.len() {
        return Err(format!("len({}) != len({})", quoted(a), quoted(b)));
    }
    let (mut a, mut b) = (parse_all(a)?, parse_all(b)?);
    if a.iter().zip(&b).all(|(a, b)| a.same(b)) {
        return Ok(());
    }
    for url in a.iter_mut().chain(&mut b) {
        url.resolve(resolve)?;
    }
    a.sort();
    b.sort();
    match a.iter().zip(&b).find(|(a, b)| !a.same(b)) {
        None => Ok(()),
        Some((a, b)) => Err(format!("resolved urls: {:?} != {:?}", a.text(), b.text())),
    }
}

/// A list as Go prints it with `%q`.
fn quoted(urls: &[String]) -> String {
    let quoted: Vec<_> = urls.iter().map(|url| format!("{url:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

fn parse_all(urls: &[String]) -> Result<Vec<Parts>, String> {
    let mut parts = urls.iter().map(|url| Parts::parse(url)).collect::<Result<Vec<_>, _>>()?;
    parts.sort();
    Ok(parts)
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Parts {
    scheme: String,
    host: String,
    path: String,
}

impl Parts {
    fn parse(url: &str) -> Result<Parts, String> {
        let bad = || format!("failed to parse string to URL: {url:?}");
        let (scheme, rest) = url.split_once("://").ok_or_else(bad)?;
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        Ok(Parts { scheme: scheme.to_ascii_lowercase(), host: host.into(), path: path.into() })
    }

    fn text(&self) -> String {
        format!("{}://{}{}", self.scheme, self.host, self.path)
    }

    fn same(&self, other: &Parts) -> bool {
        self.scheme == other.scheme && normal_host(&self.host) == normal_host(&other.host) && self.path == other.path
    }

    fn resolve(&mut self, resolve: Resolve<'_>) -> Result<(), String> {
        let is_local = self.host.rsplit_once(':').map_or(self.host.as_str(), |(host, _)| host) == "localhost";
        if is_local || self.scheme.starts_with("unix") {
            return Ok(());
        }
        self.host = resolve(&self.host).map_err(|why| format!("failed to resolve {:?} ({why})", self.text()))?;
        Ok(())
    }
}

/// Addresses in their shortest form; names as they are.
fn normal_host(host: &str) -> String {
    let bare = |text: &str| text.trim_matches(['[', ']']).parse::<IpAddr>();
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let shown = match bare(name) {
        Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
        Ok(IpAddr::V4(ip)) => ip.to_string(),
        Err(_) => name.to_ascii_lowercase(),
    };
    port.map_or(shown.clone(), |port| format!("{shown}:{port}"))
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn names(host: &str) -> Result<String, String> {
        match host {
            "one.test:2380" => Ok("10.0.0.1:2380".into()),
            "gone.test:2380" => Err("no such host".into()),
            other => Ok(other.into()),
        }
    }

    #[test_case("http://a:1,http://b:1", "http://b:1,http://a:1" => ""; "order")]
    #[test_case("http://10.0.0.1:2380", "http://one.test:2380" => ""; "name and address")]
    #[test_case("http://[::1]:1", "http://[0:0:0:0:0:0:0:1]:1" => ""; "two forms of an address")]
    #[test_case("http://a:1", "https://a:1" => r#"resolved urls: "http://a:1" != "https://a:1""#; "scheme")]
    #[test_case("http://a:1", "http://a:1,http://b:1" => r#"len(["http://a:1"]) != len(["http://a:1" "http://b:1"])"#; "count")]
    #[test_case("http://10.0.0.1:2380", "http://gone.test:2380" => r#"failed to resolve "http://gone.test:2380" (no such host)"#; "unknown name")]
    #[test_case("http://localhost:1", "http://127.0.0.1:1" => r#"resolved urls: "http://localhost:1" != "http://127.0.0.1:1""#; "localhost is never resolved")]
    fn compares(a: &str, b: &str) -> String {
        let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        check_urls_equal(&list(a), &list(b), &mut names).err().unwrap_or_default()
    }
}
