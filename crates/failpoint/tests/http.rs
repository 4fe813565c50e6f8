//! The HTTP protocol with the answers of gofail. The texts come from gofail's `runtime/http.go`.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::OnceLock,
};

fn server() -> SocketAddr {
    static AT: OnceLock<SocketAddr> = OnceLock::new();
    *AT.get_or_init(|| failpoint::serve("127.0.0.1:0").expect("a free port"))
}

fn raw(request: &str) -> String {
    let mut stream = TcpStream::connect(server()).expect("the server");
    stream.write_all(request.as_bytes()).expect("sends");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Code and body.
fn call(method: &str, path: &str, body: &str) -> (u16, String) {
    let length = body.len();
    let answer = raw(&format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}"));
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a code"), body.to_owned())
}

fn want(got: (u16, String), code: u16, body: &str) {
    assert_eq!(got, (code, body.to_owned()));
}

#[test]
fn one_point() {
    want(call("GET", "/beforeCommit", ""), 404, "failed to GET: failpoint: failpoint is disabled\n\n");
    want(call("GET", "/beforeCommit/count", ""), 500, "failed to GET: failpoint: failpoint is disabled\n");
    want(call("DELETE", "/beforeCommit", ""), 400, "failed to delete failpoint failpoint: failpoint is disabled\n");
    want(call("PUT", "/beforeCommit", "2*return(\"x\")"), 204, "");
    want(call("GET", "/beforeCommit", ""), 200, "2*return(\"x\")\n");
    let at = failpoint::position("beforeCommit");
    assert_eq!(failpoint::hit_text(at).as_deref(), Some("x"));
    // A text for a point without a value is reported and ignored.
    assert!(!failpoint::hit_unit(at));
    assert_eq!(failpoint::hit(at), None);
    want(call("GET", "/beforeCommit/count", ""), 200, "2");
    want(call("PUT", "/beforeCommit", "nonsense"), 400, "fail to set failpoint: failpoint: could not parse terms\n");
    want(call("GET", "/beforeCommit/count", ""), 200, "2");
    want(call("DELETE", "/beforeCommit", ""), 204, "");
}

#[test]
fn several_points_and_the_list() {
    want(call("PUT", "/failpoints", "afterCommit=off;defragBeforeCopy=1*sleep(1)"), 204, "");
    let (code, body) = call("GET", "/", "");
    assert_eq!(code, 200);
    let lines: Vec<_> = body.lines().collect();
    assert!(lines.contains(&"afterCommit=off") && lines.contains(&"defragBeforeCopy=1*sleep(1)"), "{body}");
    assert!(lines.contains(&"defragBeforeRename=") && lines.is_sorted(), "{body}");
    assert!(!body.contains("munlockError"), "a point without a place in the sources is not offered");
    want(call("PUT", "/failpoints", "afterCommit"), 400, "fail to parse failpoint: bad failpoint \"afterCommit\"\n");
    want(call("PUT", "/Failpoints", "nobody=off"), 400, "fail to set failpoint: failpoint: failpoint does not exist\n");
}

#[test]
fn unknown_points_and_methods() {
    want(call("GET", "/nobody", ""), 404, "failed to GET: failpoint: failpoint does not exist\n\n");
    want(call("GET", "/nobody/count", ""), 404, "failed to GET: failpoint: failpoint does not exist\n");
    want(call("PUT", "/nobody", "off"), 400, "fail to set failpoint: failpoint: failpoint does not exist\n");
    want(call("DELETE", "/nobody", ""), 400, "failed to delete failpoint failpoint: failpoint does not exist\n");
    want(call("POST", "/beforeCommit", ""), 405, "Method not allowed\n");
    assert!(raw("POST / HTTP/1.1\r\n\r\n").contains("\r\nAllow: PUT\r\n"));
    want(call("GET", "x", ""), 400, "malformed request URI\n");
}

#[test]
fn malformed_requests_get_an_answer() {
    assert!(raw("\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(raw("PUT /x HTTP/1.1\r\nContent-Length: no\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(raw("PUT /x HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n").starts_with("HTTP/1.1 413 "));
    assert!(raw("PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n").starts_with("HTTP/1.1 411 "));
}
