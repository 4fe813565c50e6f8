//! The JSON gateway in front of small services, held to what a real etcd 3.7.3 answered (testdata/gateway.txt).

mod fake;
mod http;

use std::{convert::Infallible, env, fmt::Write, fs, path::PathBuf, time::Duration};

use ::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use harness::Place;
use http::{Case, answer_lines, parse_cases};
use http_body::Frame;
use http_body_util::StreamBody;
use server::gateway::{Limits, router};
use test_case::test_case;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/gateway.txt")
}

fn cases() -> Vec<Case> {
    parse_cases(&fs::read_to_string(golden()).unwrap())
}

/// Serves the gateway on a port of its own.
async fn serve(limits: Limits) -> String {
    serve_router(router(fake::routes(), limits)).await
}

async fn serve_router(router: axum::Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn etcd_limits() -> Limits {
    Limits::for_messages(2 * 1024 * 1024)
}

#[tokio::test]
async fn answers_are_those_of_a_real_gateway() {
    let address = serve(etcd_limits()).await;
    let cases = cases();
    assert!(cases.len() > 30, "only {} cases found", cases.len());
    for case in cases {
        assert_eq!(case.run(&address).await, case.expected, "{} {}", case.head.join(" | "), case.body);
    }
}

/// The same cases against a real etcd; `UPDATE_GOLDENFILES=1` records what it answers.
#[tokio::test]
async fn a_real_gateway_answers_as_recorded() {
    let Some(program) = harness::peer("etcd-3.7.3", "etcd") else { return };
    let etcd = Place::new(program).start(&[]);
    let mut text =
        fs::read_to_string(golden()).unwrap().lines().take_while(|l| l.starts_with('#')).collect::<Vec<_>>().join("\n");
    text.push('\n');
    let update = env::var_os("UPDATE_GOLDENFILES").is_some();
    for case in cases() {
        let found = case.run(etcd.address()).await;
        if !update {
            assert_eq!(found, case.expected, "{} {}", case.head.join(" | "), case.body);
        }
        let body = Some(&case.body).filter(|body| !body.is_empty());
        let request: Vec<_> = case.comment.iter().chain(&case.head).chain(body).cloned().collect();
        let _ = writeln!(text, "\n{}\n---\n{}", request.join("\n"), found.join("\n"));
    }
    if update {
        fs::write(golden(), text).unwrap();
    }
}

async fn ask(address: &str, head: &[&str], body: &str) -> Vec<String> {
    let head = head.iter().map(|s| (*s).to_owned()).collect();
    Case { comment: Vec::new(), head, body: body.to_owned(), expected: Vec::new() }.run(address).await
}

const RANGE: &str = "POST /v3/kv/range";

#[test_case(1, 499; "cancelled")]
#[test_case(2, 500; "unknown")]
#[test_case(4, 504; "deadline exceeded")]
#[test_case(6, 409; "already exists")]
#[test_case(7, 403; "permission denied")]
#[test_case(8, 429; "resource exhausted")]
#[test_case(9, 400; "failed precondition")]
#[test_case(13, 500; "internal")]
#[test_case(14, 503; "unavailable")]
#[test_case(15, 500; "data loss")]
#[tokio::test]
async fn codes_become_statuses(code: i32, status: u16) {
    let address = serve(etcd_limits()).await;
    let expected = [
        status.to_string(),
        "content-type: application/json".to_owned(),
        format!(r#"{{"code":{code},"message":"wished <{code}>"}}"#),
    ];
    assert_eq!(ask(&address, &[RANGE, &format!("Grpc-Metadata-Wish: {code}")], "{}").await, expected);
}

#[tokio::test]
async fn a_call_without_a_valid_token_names_the_reason_in_a_header() {
    let address = serve(etcd_limits()).await;
    let found = ask(&address, &[RANGE, "Grpc-Metadata-Wish: 16"], "{}").await;
    assert_eq!(found[0], "401");
    assert!(found.contains(&"www-authenticate: wished <16>".to_owned()), "{found:?}");
}

#[tokio::test]
async fn a_call_ends_when_its_time_is_over() {
    let address = serve(etcd_limits()).await;
    let found = ask(&address, &[RANGE, "Grpc-Metadata-Wish: wait", "Grpc-Timeout: 50m"], "{}").await;
    assert_eq!((found[0].as_str(), found[2].as_str()), ("504", r#"{"code":4,"message":"context deadline exceeded"}"#));
    let found = ask(&address, &["POST /v3/watch", "Grpc-Timeout: 50m"], r#"{"create_request":{}}"#).await;
    assert_eq!(found.last().unwrap(), r#"{"error":{"code":4,"message":"context deadline exceeded"}}"#);
}

#[tokio::test]
async fn metadata_of_the_answer_comes_as_headers() {
    let address = serve(etcd_limits()).await;
    let put = ask(&address, &["POST /v3/kv/put"], r#"{"key":"Zm9v"}"#).await;
    assert_eq!(put[0], "200");
    let found = ask(&address, &[RANGE, "Grpc-Metadata-Echo: hello"], r#"{"key":"Zm9v"}"#).await;
    assert!(found.contains(&"grpc-metadata-echo: hello".to_owned()), "{found:?}");
}

#[tokio::test]
async fn an_error_in_a_stream_is_its_last_line() {
    let address = serve(etcd_limits()).await;
    let found = ask(&address, &["POST /v3/watch", "Grpc-Metadata-Fails: yes"], r#"{"create_request":{}}"#).await;
    assert_eq!(found[0], "200");
    assert_eq!(found.last().unwrap(), r#"{"error":{"code":14,"message":"etcdserver: \u003cno leader\u003e"}}"#);
}

#[test_case("junk", "Failed to decode request: invalid character 'j' looking for beginning of value"; "no JSON")]
#[test_case(r#"{"create_request":1}"#,
    "Failed to decode request: proto: syntax error (line 1:19): unexpected token 1"; "no message")]
#[tokio::test]
async fn a_stream_that_begins_with_nonsense_is_refused(body: &str, message: &str) {
    let address = serve(etcd_limits()).await;
    for path in ["POST /v3/watch", "POST /v3/lease/keepalive"] {
        if path.ends_with("keepalive") && body.starts_with('{') {
            continue; // there it is an unknown field
        }
        let found = ask(&address, &[path], body).await;
        let error = format!(r#"{{"error":{{"code":3,"message":"{message}"}}}}"#);
        assert_eq!(found, ["400", "content-type: application/json", &error], "{path}");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let address = serve(Limits { message_bytes_max: 100, body_bytes_max: 200 }).await;
    let large = format!(r#"{{"key":"Zm9v","x":"{}"}}"#, "y".repeat(300));
    let found = ask(&address, &[RANGE], &large).await;
    let expected = r#"{"code":8,"message":"request body larger than max (321 vs. 200)"}"#;
    assert_eq!((found[0].as_str(), found[2].as_str()), ("429", expected));
    let found = ask(&address, &["POST /v3/watch"], &large).await;
    assert_eq!((found[0].as_str(), found[2].as_str()), ("429", format!(r#"{{"error":{expected}}}"#).as_str()));
    let unsized_body = "Transfer-Encoding: chunked";
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let chunk = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let head = format!("{RANGE} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{unsized_body}\r\n\r\n");
    stream.write_all((head + &chunk).as_bytes()).await.unwrap();
    let mut raw = Vec::new();
    stream.read_to_end(&mut raw).await.unwrap();
    assert_eq!(answer_lines(&raw)[0], "429");
    let found = ask(&address, &["POST /v3/kv/put"], &format!(r#"{{"value":"{}"}}"#, "A".repeat(160))).await;
    assert_eq!(found[2], r#"{"code":8,"message":"grpc: received message larger than max (122 vs. 100)"}"#);
}

/// Requests go in and answers come out of one open stream, each at once.
#[tokio::test]
async fn a_watch_answers_while_it_is_still_being_asked() {
    let address = serve(etcd_limits()).await;
    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream.write_all(b"POST /v3/watch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").await.unwrap();
    let mut raw = String::new();
    for count in 1..=3 {
        // A value cut in two chunks.
        for piece in [r#"{"create_request":"#, "{}}"] {
            stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).await.unwrap();
        }
        let arrived = timeout(Duration::from_secs(5), async {
            let mut buffer = [0; 4096];
            while raw.matches("\"created\":true").count() < count {
                let read = stream.read(&mut buffer).await.unwrap();
                assert_ne!(read, 0, "closed after {raw}");
                raw.push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
        });
        arrived.await.unwrap_or_else(|_| panic!("answer {count} did not come: {raw}"));
    }
    assert!(raw.contains("transfer-encoding: chunked"), "{raw}");
}

/// A gRPC response by hand: two messages, cut where frames of the network may cut them, and an end.
async fn raw_snapshot(end: Option<HeaderMap>) -> Vec<String> {
    let messages = [vec![0x10, 3, 0x1a, 3, b'a', b'b', b'c'], vec![0x1a, 1, b'd']];
    let bytes: Vec<u8> = messages.iter().flat_map(|m| [&[0, 0, 0, 0, m.len() as u8][..], m].concat()).collect();
    let service = tower::service_fn(move |request: ::http::Request<tonic::body::Body>| {
        assert_eq!(request.uri().path(), "/etcdserverpb.Maintenance/Snapshot");
        let pieces: Vec<_> = bytes.chunks(5).map(|piece| Frame::data(Bytes::copy_from_slice(piece))).collect();
        let frames = pieces.into_iter().chain(end.clone().map(Frame::trailers)).map(Ok::<_, Infallible>);
        let body = StreamBody::new(futures_util::stream::iter(frames.collect::<Vec<_>>()));
        async move { Ok::<_, Infallible>(::http::Response::new(body)) }
    });
    let address = serve_router(router(service, etcd_limits())).await;
    ask(&address, &["POST /v3/maintenance/snapshot"], "").await
}

#[tokio::test]
async fn any_service_that_speaks_grpc_will_do() {
    let lines = [r#"{"result":{"remaining_bytes":"3","blob":"YWJj"}}"#, r#"{"result":{"blob":"ZA=="}}"#];
    let ok = HeaderMap::from_iter([(HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"))]);
    assert_eq!(raw_snapshot(Some(ok)).await, ["200", "content-type: application/json", lines[0], lines[1]]);
    let cut = r#"{"error":{"code":13,"message":"server closed the stream without sending trailers"}}"#;
    assert_eq!(raw_snapshot(None).await, ["200", "content-type: application/json", lines[0], lines[1], cut]);
}
