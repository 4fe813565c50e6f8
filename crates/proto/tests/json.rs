//! JSON against what Go's libraries made of the same input, recorded in testdata/json.txt.

use std::fs;

use prost_reflect::DynamicMessage;
use proto::{
    etcdserverpb::{PutRequest, RangeRequest, WatchResponse},
    http_routes,
    json::{self, Values},
    mvccpb, pool,
};

struct Case {
    message: String,
    input: Vec<u8>,
    expected: Vec<String>,
}

fn cases() -> Vec<Case> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/json.txt")).unwrap();
    let case = |block: &str| {
        let mut lines = block.lines().filter(|l| !l.starts_with('#')).map(str::to_owned);
        let head = lines.next()?;
        let (message, input) = head.split_once(' ').unwrap();
        let input = match input.split_once(' ').unwrap_or((input, "")) {
            ("text", text) => text.as_bytes().to_vec(),
            (_, digits) => unhex(digits),
        };
        Some(Case { message: message.to_owned(), input, expected: lines.collect() })
    };
    text.split("\n\n").filter_map(case).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
}

/// The first value of the input as the gateway reads it, then the message.
fn read(case: &Case) -> Result<Option<Vec<u8>>, json::Error> {
    let mut values = Values::default();
    values.push(&case.input);
    values.end();
    values.take_next()?.map(|value| json::decode(&case.message, &value)).transpose()
}

#[test]
fn reads_and_writes_what_go_does() {
    let cases = cases();
    assert!(cases.len() > 150, "only {} cases found", cases.len());
    for case in cases {
        let what = format!("{} {}", case.message, String::from_utf8_lossy(&case.input));
        let bytes = match read(&case) {
            Err(error) => {
                assert_eq!(vec![format!("error {error}")], case.expected, "{what}");
                continue;
            }
            Ok(None) => {
                assert_eq!(vec!["none".to_owned()], case.expected, "{what}");
                continue;
            }
            Ok(Some(bytes)) => bytes,
        };
        let theirs = unhex(case.expected[0].strip_prefix("bytes ").expect(&what));
        assert_eq!(dynamic(&case.message, &bytes), dynamic(&case.message, &theirs), "{what}");
        let written = String::from_utf8(json::encode(&case.message, &theirs).unwrap()).unwrap();
        assert_eq!(format!("json {written}"), case.expected[1], "{what}");
        assert_eq!(json::encode(&case.message, &bytes).unwrap(), written.into_bytes(), "{what}");
    }
}

fn dynamic(message: &str, bytes: &[u8]) -> DynamicMessage {
    DynamicMessage::decode(pool().get_message_by_name(message).unwrap(), bytes).unwrap()
}

/// However the input is cut, the same values come out.
#[test]
fn values_may_arrive_in_pieces() {
    let input = br#" {"a":[1,2,{"b":"}]\"{"}]} {}  "x" 12 true {"c":null}"#;
    let expected = [r#" {"a":[1,2,{"b":"}]\"{"}]}"#, " {}", r#"  "x""#, " 12", " true", r#" {"c":null}"#];
    for size in 1..input.len() {
        let mut values = Values::default();
        let mut found = Vec::new();
        for piece in input.chunks(size) {
            values.push(piece);
            while let Some(value) = values.take_next().unwrap() {
                found.push(String::from_utf8(value).unwrap());
            }
        }
        values.end();
        while let Some(value) = values.take_next().unwrap() {
            found.push(String::from_utf8(value).unwrap());
        }
        assert_eq!(found, expected, "in pieces of {size}");
        assert_eq!(values.pending(), 0);
    }
}

#[test]
fn an_object_is_given_out_as_soon_as_it_is_complete() {
    let mut values = Values::default();
    values.push(b"{\"a\":{}");
    assert_eq!(values.take_next().unwrap(), None);
    values.push(b"}");
    assert_eq!(values.take_next().unwrap().unwrap(), b"{\"a\":{}}");
}

#[test]
fn typed_messages_read_and_write() {
    let put: PutRequest = json::from_slice(br#"{"key":"a2V5","value":"dmFs","lease":"7"}"#).unwrap();
    assert_eq!(put, PutRequest { key: "key".into(), value: "val".into(), lease: 7, ..Default::default() });
    let kv = mvccpb::KeyValue { key: "k".into(), mod_revision: i64::MIN, ..Default::default() };
    let event = mvccpb::Event { kv: Some(kv), r#type: 1, prev_kv: None };
    let response = WatchResponse { events: vec![event], canceled: true, ..Default::default() };
    assert_eq!(
        String::from_utf8(json::to_vec(&response).unwrap()).unwrap(),
        r#"{"canceled":true,"events":[{"type":"DELETE","kv":{"key":"aw==","mod_revision":"-9223372036854775808"}}]}"#
    );
    let error = json::from_slice::<RangeRequest>(b"{} x").unwrap_err();
    assert_eq!(error.to_string(), "invalid character 'x' after top-level value");
}

/// Pieces of one message merge, a later oneof member replaces an earlier one.
#[test]
fn repeated_single_fields_merge() {
    let bytes = [0x0a, 2, 0x08, 1, 0x0a, 2, 0x18, 3, 0x10, 9, 0x10, 0];
    assert_eq!(
        json::encode("etcdserverpb.WatchResponse", &bytes).unwrap(),
        br#"{"header":{"cluster_id":"1","revision":"3"}}"#
    );
    let bytes = [0x0a, 2, 0x18, 5, 0x12, 0];
    assert_eq!(json::encode("etcdserverpb.RequestOp", &bytes).unwrap(), br#"{"request_put":{}}"#);
}

#[test]
fn bytes_that_are_no_message_are_an_error() {
    let error = json::encode("etcdserverpb.PutRequest", &[0x0a, 5, 1]).unwrap_err();
    assert_eq!(error.to_string(), "failed to read etcdserverpb.PutRequest");
    let error = json::encode("etcdserverpb.PutRequest", &[0x08, 1]).unwrap_err();
    assert_eq!(error.to_string(), "failed to read key");
    assert!(json::encode("etcdserverpb.Nothing", b"").is_err());
    assert!(json::decode("etcdserverpb.Nothing", b"{}").is_err());
}

#[test]
fn deep_json_is_refused_and_not_followed() {
    let nested = format!("{}{{}}{}", "{\"success\":[{\"request_txn\":".repeat(3000), "}]}".repeat(3000));
    let error = json::decode("etcdserverpb.TxnRequest", nested.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "proto: exceeded max recursion depth");
    let error = json::decode("etcdserverpb.TxnRequest", "[".repeat(20_000).as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "invalid character '[' exceeded max depth");
}

#[test]
fn routes_lead_to_methods() {
    let routes = http_routes();
    assert_eq!(routes.len(), 54);
    let watch = routes.iter().find(|r| r.path == "/v3/watch").unwrap();
    assert_eq!(watch.grpc_path(), "/etcdserverpb.Watch/Watch");
    assert!(watch.client_streaming && watch.server_streaming);
    let revoke: Vec<_> = routes.iter().filter(|r| r.method == "LeaseRevoke").map(|r| r.path.as_str()).collect();
    assert_eq!(revoke, ["/v3/lease/revoke", "/v3/kv/lease/revoke"]);
    assert!(!routes.iter().any(|r| r.method == "RangeStream"));
}
