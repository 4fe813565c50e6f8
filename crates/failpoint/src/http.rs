//! The small HTTP server for fault tools, with gofail's paths, codes and texts.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | all points, a line `NAME=TERMS` each |
//! | `GET /NAME` | its terms |
//! | `GET /NAME/count` | how often a term has acted |
//! | `PUT /NAME`, body: terms | sets them |
//! | `PUT /failpoints`, body: `NAME=TERMS;…` | sets several |
//! | `DELETE /NAME` | takes them away |
//!
//! It runs on threads of its own, so that it answers while the program's own threads sleep in a point. One request
//! a connection.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::PoisonError,
    thread,
    time::Duration,
};

use crate::{Error, act::LAST_WORDS, disable, enable, list, parse_list, status};

const HEAD_BYTES_MAX: u64 = 16 << 10;
const BODY_BYTES_MAX: usize = 1 << 20;
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Listens at `address`, such as `127.0.0.1:22381`, and serves on its own thread until the process
/// ends. Returns the bound address. As in Go, `:22381` listens on all IPv4 addresses.
pub fn serve(address: &str) -> io::Result<SocketAddr> {
    // Go takes `:22381` for all addresses.
    let address = if address.starts_with(':') { format!("0.0.0.0{address}") } else { address.to_owned() };
    let listener = TcpListener::bind(address)?;
    let at = listener.local_addr()?;
    thread::Builder::new().name("failpoint-http".into()).spawn(move || {
        for stream in listener.incoming().flatten() {
            // A tool that does not read its answer holds up nobody else, and its own fate is of no interest here.
            let _ = thread::Builder::new().name("failpoint-conn".into()).spawn(move || serve_one(&stream));
        }
    })?;
    Ok(at)
}

struct Request {
    method: String,
    target: String,
    body: String,
}

struct Answer {
    code: u16,
    headers: &'static str,
    body: String,
}

fn serve_one(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE_MAX))?;
    stream.set_write_timeout(Some(IDLE_MAX))?;
    let request = read(stream);
    // Until the answer is out no point may end the process.
    let _last = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = request.map_or_else(|refused| refused, |request| answer(&request));
    write(stream, &answer)
}

fn read(stream: &TcpStream) -> Result<Request, Answer> {
    let malformed = || refuse(400, "malformed request");
    let mut reader = BufReader::new(stream);
    let mut head = (&mut reader).take(HEAD_BYTES_MAX);
    let mut line = String::new();
    head.read_line(&mut line).map_err(|_| malformed())?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Err(malformed()) };
    let (method, target) = (method.to_owned(), target.to_owned());
    let mut length = 0;
    loop {
        let mut line = String::new();
        head.read_line(&mut line).map_err(|_| malformed())?;
        let Some((name, value)) = line.split_once(':') else {
            if line.trim().is_empty() && line.ends_with('\n') {
                break;
            }
            return Err(malformed());
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().map_err(|_| malformed())?,
            "transfer-encoding" => return Err(refuse(411, "send the body with its Content-Length")),
            _ => {}
        }
    }
    if length > BODY_BYTES_MAX {
        return Err(refuse(413, "the body is too large"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).map_err(|_| refuse(400, "failed ReadAll in PUT"))?;
    let body = String::from_utf8(body).map_err(|_| malformed())?;
    Ok(Request { method, target, body })
}

fn answer(request: &Request) -> Answer {
    let Some(key) = request.target.strip_prefix('/') else { return refuse(400, "malformed request URI") };
    match request.method.as_str() {
        "PUT" => put(key, &request.body),
        "GET" => get(key),
        "DELETE" => match disable(key) {
            Ok(()) => done(),
            Err(error) => refuse(400, &format!("failed to delete failpoint {error}")),
        },
        _ => {
            let mut answer = refuse(405, "Method not allowed");
            // gofail means to name all three and overwrites the first two.
            answer.headers =
                "Allow: PUT\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n";
            answer
        }
    }
}

fn put(key: &str, body: &str) -> Answer {
    let several = key.eq_ignore_ascii_case("failpoints");
    let pairs = if several { parse_list(body) } else { Ok(vec![(key, body)]) };
    let pairs = match pairs {
        Ok(pairs) => pairs,
        Err(error) => return refuse(400, &format!("fail to parse failpoint: {error}")),
    };
    match pairs.into_iter().try_for_each(|(name, terms)| enable(name, terms)) {
        Ok(()) => done(),
        Err(error) => refuse(400, &format!("fail to set failpoint: {error}")),
    }
}

fn get(key: &str) -> Answer {
    if key.is_empty() {
        let line = |name| format!("{name}={}", status(name).map_or(String::new(), |(terms, _)| terms));
        return ok(list().map(line).collect::<Vec<_>>().join("\n") + "\n");
    }
    if let Some(name) = key.strip_suffix("/count") {
        return match status(name) {
            Ok((_, count)) => ok(count.to_string()),
            Err(error @ Error::NoExist) => refuse(404, &format!("failed to GET: {error}")),
            Err(error) => refuse(500, &format!("failed to GET: {error}")),
        };
    }
    match status(key) {
        Ok((terms, _)) => ok(terms + "\n"),
        // gofail goes on after the error and appends the empty terms.
        Err(error) => refuse(404, &format!("failed to GET: {error}\n")),
    }
}

fn ok(body: String) -> Answer {
    Answer { code: 200, headers: "Content-Type: text/plain; charset=utf-8\r\n", body }
}

fn done() -> Answer {
    Answer { code: 204, headers: "", body: String::new() }
}

fn refuse(code: u16, text: &str) -> Answer {
    let headers = "Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n";
    Answer { code, headers, body: format!("{text}\n") }
}

fn write(mut stream: &TcpStream, answer: &Answer) -> io::Result<()> {
    let reason = match answer.code {
        200 => "OK",
        204 => "No Content",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        411 => "Length Required",
        413 => "Request Entity Too Large",
        _ => "Internal Server Error",
    };
    let Answer { code, headers, body } = answer;
    // An answer without contents has no length either.
    let length = if *code == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!("HTTP/1.1 {code} {reason}\r\n{headers}{length}Connection: close\r\n\r\n");
    stream.write_all((head + body).as_bytes())?;
    stream.flush()
}
