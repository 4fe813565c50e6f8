//! HTTP/1.1 by hand, as far as the tests need it.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use super::Member;

/// Sends one request and returns status line, headers and body as text.
pub fn ask(member: &Member, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(("127.0.0.1", member.port)).expect("connect");
    stream.write_all(request.as_bytes()).expect("ask");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("answer");
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status line");
    (status, text)
}
