//! Peer URLs on the command line, and whether they make a cluster. Texts of errors are etcd's.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{SocketAddr, ToSocketAddrs},
};

use anyhow::{anyhow, bail};

/// Peer URLs of each member by its name.
pub(crate) type Cluster = BTreeMap<String, Vec<String>>;

/// `a=http://1.1.1.1:2380,a=http://2.2.2.2:2380,b=http://3.3.3.3:2380`.
pub(crate) fn parse_cluster(text: &str) -> anyhow::Result<Cluster> {
    let mut cluster = Cluster::new();
    for item in text.split(',').filter(|item| !item.is_empty()) {
        let (name, url) = item.split_once('=').unwrap_or((item, ""));
        cluster.entry(name.to_owned()).or_default().push(parse_url(url)?);
    }
    cluster.values_mut().for_each(|urls| urls.sort_unstable());
    Ok(cluster)
}

pub(crate) fn parse_list(text: &str) -> anyhow::Result<Vec<String>> {
    let mut urls: Vec<_> = text.split(',').map(parse_url).collect::<Result<_, _>>()?;
    urls.sort_unstable();
    Ok(urls)
}

fn parse_url(text: &str) -> anyhow::Result<String> {
    let text = text.trim();
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let scheme = scheme.to_ascii_lowercase();
    match scheme.as_str() {
        "unix" | "unixs" => {}
        "http" | "https" => {
            let (address, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
            let host = address.rsplit_once('@').map_or(address, |parts| parts.1);
            if !has_port(host) {
                bail!("URL address does not have the form \"host:port\": {text}");
            }
            if path.starts_with('/') {
                bail!("URL must not contain a path: {text}");
            }
        }
        _ => bail!("URL scheme must be http, https, unix, or unixs: {text}"),
    }
    Ok(format!("{scheme}://{rest}"))
}

fn has_port(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let bracketed = host.starts_with('[') && host.ends_with(']');
    (bracketed || !host.contains([':', '[', ']'])) && port.bytes().all(|digit| digit.is_ascii_digit())
}

/// Refuses a cluster without this member, with other URLs for it than `advertised`, or with a URL twice.
pub(crate) fn check(cluster: &Cluster, name: &str, advertised: &[String]) -> anyhow::Result<()> {
    let Some(own) = cluster.get(name) else {
        bail!("couldn't find local name {name:?} in the initial cluster configuration");
    };
    if let Err(why) = same(advertised, own) {
        return Err(mismatch(name, advertised, own, &why));
    }
    let mut seen = BTreeSet::new();
    if !cluster.values().flatten().all(|url| seen.insert(url)) {
        bail!("initial cluster {} has duplicate url", pairs(cluster.iter()));
    }
    Ok(())
}

/// Equal as text, or by the addresses they resolve to.
fn same(a: &[String], b: &[String]) -> Result<(), String> {
    if a.len() != b.len() {
        return Err(format!("len({a:?}) != len({b:?})").replace(", ", " "));
    }
    if a == b {
        return Ok(());
    }
    let resolved = |urls: &[String]| {
        let mut urls: Vec<_> = urls.iter().map(|url| resolve(url)).collect();
        urls.sort_unstable();
        urls
    };
    let (a, b) = (resolved(a), resolved(b));
    match a.iter().zip(&b).find(|(a, b)| a != b) {
        Some((a, b)) => Err(format!("resolved urls: {a:?} != {b:?}")),
        None => Ok(()),
    }
}

/// The URL with an address in place of its host. What does not resolve stays as it is.
fn resolve(url: &str) -> String {
    let Some((scheme @ ("http" | "https"), address)) = url.split_once("://") else { return url.to_owned() };
    // Names of this machine mean the same everywhere; etcd leaves them too.
    if address.starts_with("localhost:") {
        return url.to_owned();
    }
    let found = address.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.map_or_else(|| url.to_owned(), |found: SocketAddr| format!("{scheme}://{found}"))
}

fn mismatch(name: &str, advertised: &[String], own: &[String], why: &str) -> anyhow::Error {
    let all = advertised.join(",");
    let missing: Vec<_> =
        own.iter().filter(|url| !advertised.contains(url)).map(|url| format!("{name}={url}")).collect();
    if !missing.is_empty() {
        let missing = missing.join(",");
        return anyhow!("--initial-cluster has {missing} but missing from --initial-advertise-peer-urls={all} ({why})");
    }
    let extra: Vec<_> = advertised.iter().filter(|url| !own.contains(url)).cloned().collect();
    let shown = pairs([(&name.to_owned(), &advertised.to_vec())].into_iter());
    anyhow!("--initial-advertise-peer-urls has {} but missing from --initial-cluster={shown}", extra.join(","))
}

fn pairs<'a>(cluster: impl Iterator<Item = (&'a String, &'a Vec<String>)>) -> String {
    let mut pairs: Vec<_> =
        cluster.flat_map(|(name, urls)| urls.iter().map(move |url| format!("{name}={url}"))).collect();
    pairs.sort_unstable();
    pairs.join(",")
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("http://localhost:2380" => "ok")]
    #[test_case("https://[::1]:2380" => "ok")]
    #[test_case("unix://a" => "ok")]
    #[test_case("" => "URL scheme must be http, https, unix, or unixs: ")]
    #[test_case("x" => "URL scheme must be http, https, unix, or unixs: x")]
    #[test_case("ftp://h:1" => "URL scheme must be http, https, unix, or unixs: ftp://h:1")]
    #[test_case("http://h" => "URL address does not have the form \"host:port\": http://h")]
    #[test_case("http://::1:2380" => "URL address does not have the form \"host:port\": http://::1:2380")]
    #[test_case("http://h:1/" => "URL must not contain a path: http://h:1/")]
    fn urls(text: &str) -> String {
        parse_url(text).map_or_else(|error| error.to_string(), |_| "ok".into())
    }

    #[test_case("a=http://h:1" => "ok")]
    #[test_case("b=http://h:1" => "couldn't find local name \"a\" in the initial cluster configuration")]
    #[test_case("a=http://h:1,b=http://h:1" => "initial cluster a=http://h:1,b=http://h:1 has duplicate url")]
    fn clusters(text: &str) -> String {
        let cluster = parse_cluster(text).unwrap();
        check(&cluster, "a", &["http://h:1".to_owned()]).map_or_else(|error| error.to_string(), |()| "ok".into())
    }

    #[test]
    fn hosts_may_be_names_or_addresses() {
        let cluster = parse_cluster("a=http://127.0.0.1:1").unwrap();
        assert!(check(&cluster, "a", &["http://127.0.0.1:1".into()]).is_ok());
        let error = check(&cluster, "a", &["http://127.0.0.1:2".into()]).unwrap_err().to_string();
        assert_eq!(
            error,
            "--initial-cluster has a=http://127.0.0.1:1 but missing from --initial-advertise-peer-urls=\
             http://127.0.0.1:2 (resolved urls: \"http://127.0.0.1:2\" != \"http://127.0.0.1:1\")"
        );
    }
}
