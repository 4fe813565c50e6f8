//! A plain HTTP/1.1 client for the JSON gateway: enough to talk to a local server, and nothing to build for it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use harness::wait_max;
use serde_json::Value;

const JSON: &str = "Content-Type: application/json\r\n";

pub(crate) struct Http {
    stream: BufReader<TcpStream>,
    host: String,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub content_type: String,
    pub body: String,
}

impl Http {
    /// The connection and each part of an answer may take [`wait_max`]: servers end requests earlier by themselves.
    pub(crate) fn connect(endpoint: &str) -> Result<Http> {
        Http::connect_within(endpoint, wait_max())
    }

    /// For requests that a server should not answer.
    pub(crate) fn connect_within(endpoint: &str, limit: Duration) -> Result<Http> {
        let address: SocketAddr = endpoint.parse().with_context(|| format!("{endpoint:?} is not host:port"))?;
        let stream = TcpStream::connect_timeout(&address, limit)?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_nodelay(true)?;
        Ok(Http { stream: BufReader::new(stream), host: endpoint.to_owned() })
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<Answer> {
        self.send("GET", path, JSON, "")?;
        self.receive()
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Result<Answer> {
        self.send("POST", path, JSON, body)?;
        self.receive()
    }

    /// Posts a request with the token of a user; without one if it is empty.
    pub(crate) fn post_as(&mut self, token: &str, path: &str, body: &str) -> Result<Answer> {
        let who = if token.is_empty() { String::new() } else { format!("Authorization: {token}\r\n") };
        self.send("POST", path, &format!("{JSON}{who}"), body)?;
        self.receive()
    }

    /// Posts a request that requires a cluster feature.
    pub(crate) fn post_requiring(&mut self, feature: &str, path: &str, body: &str) -> Result<Answer> {
        self.send("POST", path, &format!("{JSON}Grpc-Metadata-Require-Feature: {feature}\r\n"), body)?;
        self.receive()
    }

    /// Posts a form that asks for another method.
    pub(crate) fn post_form(&mut self, path: &str, method: &str, body: &str) -> Result<Answer> {
        let headers =
            format!("Content-Type: application/x-www-form-urlencoded\r\nX-HTTP-Method-Override: {method}\r\n");
        self.send("POST", path, &headers, body)?;
        self.receive()
    }

    /// A token, or `None` if the server does not let this user in.
    pub(crate) fn log_in(&mut self, name: &str, password: &str) -> Result<Option<String>> {
        let login = serde_json::json!({"name": name, "password": password});
        let answer = self.post("/v3/auth/authenticate", &login.to_string())?;
        let value: Value = serde_json::from_str(&answer.body)?;
        Ok(value["token"].as_str().filter(|_| answer.status == 200).map(str::to_owned))
    }

    /// A request that must succeed.
    pub(crate) fn call(&mut self, path: &str, body: &Value) -> Result<Value> {
        self.call_as("", path, body)
    }

    pub(crate) fn call_as(&mut self, token: &str, path: &str, body: &Value) -> Result<Value> {
        let answer = self.post_as(token, path, &body.to_string())?;
        if answer.status != 200 {
            bail!("{path} answered {body} with {}: {}", answer.status, answer.body.trim());
        }
        serde_json::from_str(&answer.body).with_context(|| format!("{path} answered no JSON: {}", answer.body))
    }

    /// The first `count` lines of an answer that does not end.
    pub(crate) fn stream(mut self, path: &str, body: &str, count: usize) -> Result<Vec<String>> {
        self.send("POST", path, JSON, body)?;
        let head = self.head()?;
        let mut text = String::new();
        while text.lines().count() < count || !text.ends_with('\n') {
            match self.chunk() {
                Ok(Some(piece)) => text.push_str(&String::from_utf8_lossy(&piece)),
                Ok(None) => break,
                Err(error) => bail!("{path} answered {} lines instead of {count}: {error:#}", text.lines().count()),
            }
        }
        Ok([vec![format!("status {}", head.status)], text.lines().map(str::to_owned).collect()].concat())
    }

    fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Result<()> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}Content-Length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        // In one piece: two would wait for each other's acknowledgement.
        self.stream.get_mut().write_all(format!("{head}{body}").as_bytes())?;
        Ok(())
    }

    fn receive(&mut self) -> Result<Answer> {
        let head = self.head()?;
        let mut body = Vec::new();
        match head.length {
            Some(length) => {
                body.resize(length, 0);
                self.stream.read_exact(&mut body)?;
            }
            None if head.chunked => {
                while let Some(piece) = self.chunk()? {
                    body.extend(piece);
                }
            }
            None => {
                self.stream.read_to_end(&mut body)?;
            }
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Answer { status: head.status, content_type: head.content_type, body })
    }

    fn head(&mut self) -> Result<Head> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.with_context(|| format!("the answer begins with {first:?}"))?;
        let mut head = Head { status, ..Head::default() };
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { return Ok(head) };
            match (name.to_ascii_lowercase().as_str(), value.trim()) {
                ("content-length", value) => head.length = Some(value.parse()?),
                ("transfer-encoding", value) => head.chunked = value.eq_ignore_ascii_case("chunked"),
                ("content-type", value) => value.clone_into(&mut head.content_type),
                _ => {}
            }
        }
    }

    /// `None` after the last chunk.
    fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        let line = self.line()?;
        let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)?;
        let mut piece = vec![0; size + 2];
        self.stream.read_exact(&mut piece)?;
        piece.truncate(size);
        Ok((size > 0).then_some(piece))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            bail!("the connection was closed");
        }
        Ok(line.trim_end().to_owned())
    }
}

#[derive(Default)]
struct Head {
    status: u16,
    length: Option<usize>,
    chunked: bool,
    content_type: String,
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// Answers one request with fixed bytes.
    fn answering(bytes: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let endpoint = listener.local_addr().expect("its address").to_string();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            stream.write_all(bytes.as_bytes()).expect("the answer is taken");
        });
        endpoint
    }

    #[test]
    fn a_body_comes_by_length_or_in_chunks() {
        let plain = "HTTP/1.1 400 Bad Request\r\nContent-Type: a/b\r\ncontent-length: 3\r\n\r\nabc";
        let answer = Http::connect(&answering(plain)).and_then(|mut http| http.get("/")).expect("an answer");
        assert_eq!((answer.status, answer.content_type.as_str(), answer.body.as_str()), (400, "a/b", "abc"));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
        let answer = Http::connect(&answering(chunked)).and_then(|mut http| http.get("/")).expect("an answer");
        assert_eq!((answer.status, answer.body.as_str()), (200, "abc"));
    }

    #[test]
    fn a_stream_is_read_as_far_as_asked() {
        let endless = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n4\r\ntwo\n\r\n";
        let http = Http::connect(&answering(endless)).expect("a connection");
        assert_eq!(http.stream("/", "{}", 2).expect("two lines"), ["status 200", "one", "two"]);
    }
}
