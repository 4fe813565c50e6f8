//! A plain HTTP/1.1 client that shows bytes as they came, and the cases of testdata/gateway.txt.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// How long a stream must be silent to be taken for waiting.
const QUIET: Duration = Duration::from_millis(700);

pub(super) struct Case {
    /// Comment lines before the request.
    pub comment: Vec<String>,
    /// Method and path, then headers.
    pub head: Vec<String>,
    /// As written in the file; `@put N` stands for a put with N characters of base64.
    pub body: String,
    pub expected: Vec<String>,
}

pub(super) fn parse_cases(text: &str) -> Vec<Case> {
    text.split("\n\n").filter(|block| block.contains("\n---\n")).map(parse_case).collect()
}

fn parse_case(block: &str) -> Case {
    let (request, response) = block.split_once("\n---\n").unwrap();
    let (comment, lines): (Vec<_>, Vec<_>) = request.lines().map(str::to_owned).partition(|l| l.starts_with('#'));
    let headers = lines.iter().skip(1).take_while(|l| l.split_once(": ").is_some_and(|(n, _)| is_name(n))).count();
    let body = lines[headers + 1..].join("\n");
    let expected = response.lines().map(str::to_owned).collect();
    Case { comment, head: lines[..=headers].to_vec(), body, expected }
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

impl Case {
    fn payload(&self) -> Vec<u8> {
        match self.body.strip_prefix("@put ").map(|n| n.parse::<usize>().unwrap()) {
            Some(length) => format!(r#"{{"key":"Zm9v","value":"{}"}}"#, "A".repeat(length)).into_bytes(),
            None => self.body.clone().into_bytes(),
        }
    }

    /// Sends the request; the answer as the file writes it.
    pub(super) async fn run(&self, address: &str) -> Vec<String> {
        let payload = self.payload();
        let mut request = format!("{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", self.head[0]);
        for header in &self.head[1..] {
            request.push_str(&format!("{header}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n", payload.len()));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.write_all(&payload).await.unwrap();
        let mut raw = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(Ok(read @ 1..)) = timeout(QUIET, stream.read(&mut buffer)).await {
            raw.extend_from_slice(&buffer[..read]);
        }
        answer_lines(&raw)
    }
}

/// Status, the headers that are the gateway's, and the body without what differs from run to run.
pub(super) fn answer_lines(raw: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(raw);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return vec!["no answer".to_owned()] };
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|l| l.split(' ').nth(1)).unwrap_or("?").to_owned();
    let mut headers: Vec<_> = lines.map(|l| l.split_once(": ").unwrap_or((l, ""))).collect();
    let chunked = headers.iter().any(|(n, v)| n.eq_ignore_ascii_case("transfer-encoding") && *v == "chunked");
    headers.retain(|(name, _)| {
        let name = name.to_ascii_lowercase();
        ["content-type", "location", "www-authenticate"].contains(&name.as_str()) || name.starts_with("grpc-metadata-")
    });
    let mut out = vec![status];
    let mut headers: Vec<_> = headers.iter().map(|(n, v)| format!("{}: {v}", n.to_ascii_lowercase())).collect();
    headers.sort();
    out.extend(headers);
    let body = if chunked { unchunked(body) } else { body.to_owned() };
    out.extend(body.lines().filter(|l| !l.is_empty()).map(normal));
    out
}

fn unchunked(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let Ok(length @ 1..) = usize::from_str_radix(length, 16) else { break };
        out.push_str(rest.get(..length).unwrap_or(rest));
        body = rest.get(length + 2..).unwrap_or_default();
    }
    out
}

/// Go's JSON has spaces behind commas or not, its errors a space or a no-break space, depending on the build.
fn normal(line: &str) -> String {
    let mut out =
        line.replace('\u{a0}', " ").replace("\", \"", "\",\"").replace("}, \"", "},\"").replace("], \"", "],\"");
    for digit in '0'..='9' {
        out = out.replace(&format!("{digit}, \""), &format!("{digit},\""));
    }
    for name in ["cluster_id", "member_id", "raft_term"] {
        let key = format!("\"{name}\":\"");
        if let Some((before, rest)) = out.split_once(&key)
            && let Some((_, after)) = rest.split_once('"')
        {
            out = format!("{before}{key}1\"{after}");
        }
    }
    out
}
