//! HTTP/1.1 by hand, as far as the tests need it.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use super::Member;

/// Sends one request and returns status line, headers and body as text.
pub fn ask(member: &Member, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    exchange(member.port, method, path, headers, body)
}

/// Sends one request to any port and returns status and body.
pub fn send(port: u16, method: &str, path: &str, body: &str) -> (u16, String) {
    let (status, text) = exchange(port, method, path, &[], body);
    (status, text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

fn exchange(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connect");
    stream.write_all(request.as_bytes()).expect("ask");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("answer");
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status line");
    (status, text)
}
