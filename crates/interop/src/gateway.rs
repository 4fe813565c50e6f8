//! The gateway scenario: HTTP requests from `interop/gateway.txt`, answers compared as JSON.
//!
//! A line is `POST path body`, `GET path`, `FORM method path body` for a posted form that asks for another method, or
//! `STREAM n path body` for the first n lines of a stream. In bodies,
//! `b64(text)` stands for the text in base64, as bytes are written there.

use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{base64, http::Http, normal, root, scenario::Lines};

pub(crate) fn run(endpoint: &str) -> Result<Lines> {
    let path = root()?.join("interop/gateway.txt");
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let answer = request(endpoint, line).with_context(|| format!("in {line:?}"))?;
        lines.push((line.to_owned(), answer));
    }
    Ok(lines)
}

fn request(endpoint: &str, line: &str) -> Result<String> {
    let (method, rest) = line.split_once(' ').context("a request needs a path")?;
    let mut http = Http::connect(endpoint)?;
    let answer = match method {
        "GET" => http.get(rest)?,
        "POST" => {
            let (path, body) = rest.split_once(' ').unwrap_or((rest, ""));
            http.post(path, &expand(body)?)?
        }
        "FORM" => {
            let [method, path, body] = rest.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                bail!("write: FORM method path body")
            };
            http.post_form(path, method, body)?
        }
        "STREAM" => {
            let [count, path, body] = rest.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                bail!("write: STREAM n path body")
            };
            let lines = http.stream(path, &expand(body)?, count.parse()?)?;
            return Ok(lines.iter().map(|line| show(line, endpoint)).collect::<Vec<_>>().join("\n"));
        }
        _ => bail!("unknown method {method:?}; write GET, POST, FORM or STREAM"),
    };
    Ok(format!("{} {}\n{}", answer.status, answer.content_type, show(&answer.body, endpoint)))
}

fn show(body: &str, endpoint: &str) -> String {
    match serde_json::from_str::<Value>(body) {
        Ok(value) => normal::json(value).to_string(),
        Err(_) => {
            let mut lines: Vec<_> = body.lines().map(|line| normal::text(line, endpoint)).collect();
            // etcd keeps its health checks in a map and lists them in any order.
            lines.sort_by_key(|line| !line.starts_with('['));
            let checks = lines.iter().take_while(|line| line.starts_with('[')).count();
            lines[..checks].sort();
            lines.join("\n")
        }
    }
}

fn expand(body: &str) -> Result<String> {
    let mut out = String::new();
    let mut rest = body;
    while let Some((before, after)) = rest.split_once("b64(") {
        let (text, after) = after.split_once(')').context("b64( is not closed")?;
        out.push_str(before);
        out.push_str(&base64(text.as_bytes()));
        rest = after;
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_in_base64() {
        assert_eq!(
            expand(r#"{"key":"b64(a)","value":"b64(abc)"}"#).expect("closed"),
            r#"{"key":"YQ==","value":"YWJj"}"#
        );
        assert!(expand("b64(a").is_err());
    }
}
