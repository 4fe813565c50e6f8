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
    parse(&String::from_utf8_lossy(&bytes))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not an HTTP reply"))
}

fn parse(text: &str) -> Option<Reply> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { join_chunks(body)? } else { body.to_owned() };
    Some(Reply { status, head: head.to_owned(), body })
}

/// The body without the sizes between its chunks.
fn join_chunks(mut text: &str) -> Option<String> {
    let mut body = String::new();
    loop {
        let (size, rest) = text.split_once("\r\n")?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body += rest.get(..size)?;
        text = rest.get(size + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined() {
        let reply =
            parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n")
                .unwrap();
        assert_eq!((reply.status, reply.body.as_str()), (200, "abc0123456789"));
    }
}
