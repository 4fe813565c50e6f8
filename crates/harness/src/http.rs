//! HTTP/1.1 requests over one connection each, without a client library.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    time::Duration,
};

use crate::wait_max;

/// A reply as the server sent it.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// Status line and header lines.
    pub head: String,
    pub body: String,
}

/// Sends a request to `host:port` and reads the reply until the server closes the connection.
pub fn request(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Reply> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(wait_max().max(Duration::from_secs(1))))?;
    stream.write_all(text.as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    parse(&String::from_utf8_lossy(&bytes)).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not an HTTP reply"))
}

fn parse(text: &str) -> Option<Reply> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Reply { status, head: head.to_owned(), body: body.to_owned() })
}
