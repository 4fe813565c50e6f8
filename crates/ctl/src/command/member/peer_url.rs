//! Peer addresses, checked before they reach the cluster: a wrong one there is hard to get rid of.

use cli::quote;

use crate::failure::Failure;

pub(super) fn check(urls: &[String]) -> Result<(), Failure> {
    urls.iter().try_for_each(|url| check_one(url.trim()).map_err(Failure::error))
}

fn check_one(url: &str) -> Result<(), String> {
    let (scheme, rest) = scheme(url)?;
    match scheme.to_lowercase().as_str() {
        "http" | "https" => {}
        "unix" | "unixs" => return Ok(()),
        _ => return Err(format!("URL scheme must be http, https, unix, or unixs: {url}")),
    }
    let rest = rest.strip_prefix("//").unwrap_or_default();
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let outside_brackets = host.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = host[outside_brackets..].rfind(':').map(|at| at + outside_brackets) else {
        return Err(format!("URL address does not have the form \"host:port\": {url}"));
    };
    if !host[colon + 1..].chars().all(|c| c.is_ascii_digit()) {
        let (url, port) = (quote(url.as_bytes()), quote(&host.as_bytes()[colon..]));
        return Err(format!("parse {url}: invalid port {port} after host"));
    }
    if path.starts_with('/') {
        return Err(format!("URL must not contain a path: {url}"));
    }
    Ok(())
}

/// The scheme, empty if there is none, and what follows its colon.
fn scheme(url: &str) -> Result<(&str, &str), String> {
    let Some((scheme, rest)) = url.split_once(':') else { return Ok(("", url)) };
    let parse = |reason| Err(format!("parse {}: {reason}", quote(url.as_bytes())));
    if scheme.is_empty() {
        return parse("missing protocol scheme");
    }
    let valid = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(valid) {
        return Ok((scheme, rest));
    }
    if scheme.contains('/') { Ok(("", url)) } else { parse("first path segment in URL cannot contain colon") }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    #[test_case("http://10.0.0.1:2380" => Ok(()))]
    #[test_case("https://[::1]:2380" => Ok(()))]
    #[test_case("http://[::1]" => Err("URL address does not have the form \"host:port\": http://[::1]".into()))]
    #[test_case("unix:///run/x" => Ok(()))]
    #[test_case("http://a:1/b" => Err("URL must not contain a path: http://a:1/b".into()))]
    #[test_case("a:1" => Err("URL scheme must be http, https, unix, or unixs: a:1".into()))]
    #[test_case("" => Err("URL scheme must be http, https, unix, or unixs: ".into()))]
    fn urls(url: &str) -> Result<(), String> {
        super::check_one(url)
    }
}
