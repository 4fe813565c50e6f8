//! Bodies of the JSON gateway, for every request it takes.

use fuzz::damage;
use proto::{
    http_routes,
    json::{self, Values},
};

const SEEDS: [&str; 8] = [
    r#"{"key":"Zm9v","value":"YmFy","lease":"7","prev_kv":true}"#,
    r#"{"key":"AA==","range_end":"AA==","limit":10,"sort_order":"DESCEND","sortTarget":2,"keys_only":false}"#,
    r#"{"compare":[{"result":"EQUAL","target":"VALUE","key":"Zg==","value":"Zg=="}],"success":[{"request_put":{"key":"Zg=="}}]}"#,
    r#"{"create_request":{"key":"Zg==","start_revision":"5","filters":["NOPUT",1],"watch_id":-1}}"#,
    r#"{"ID":"123","TTL":-9223372036854775808,"keys":null}"#,
    r#"{"action":"ACTIVATE","memberID":"18446744073709551615","alarm":1}"#,
    r#"{"peerURLs":["http://a","\u00e4\ud83d\ude00"],"isLearner":true,"unknown":{"a":[1,2.5e3,"x"]}}"#,
    "{\"revision\":1e3,\"physical\":\"true\"}\n{\"key\":\"Zg==\"}",
];

/// A body that is understood gives a message that can be shown, and what is shown is understood as the same message.
fn exercise(body: &[u8]) {
    for route in http_routes() {
        let Ok(message) = json::decode(&route.input, body) else { continue };
        let shown = json::encode(&route.input, &message).expect("what was decoded can be encoded");
        let again = json::decode(&route.input, &shown).expect("what was encoded can be decoded");
        let shown_again = json::encode(&route.input, &again).expect("encode again");
        assert_eq!(String::from_utf8_lossy(&shown), String::from_utf8_lossy(&shown_again), "{}", route.input);
    }
}

#[test]
fn body_of_any_bytes() {
    bolero::check!().with_iterations(2000).for_each(|input: &[u8]| exercise(input));
}

#[test]
fn damaged_body() {
    bolero::check!().with_iterations(4000).with_max_len(32).for_each(|input: &[u8]| {
        let Some((&which, script)) = input.split_first() else { return };
        exercise(&damage(SEEDS[which as usize % SEEDS.len()].as_bytes(), script));
    });
}

/// A stream of values gives the same values however its bytes are cut into pieces.
#[test]
fn pieces_of_a_stream() {
    bolero::check!().with_iterations(2000).with_max_len(64).for_each(|input: &[u8]| {
        let [a, b, step, script @ ..] = input else { return };
        let seeds = [SEEDS[*a as usize % SEEDS.len()], SEEDS[*b as usize % SEEDS.len()]].concat();
        let stream = damage(seeds.as_bytes(), script);
        let whole = read(&stream, stream.len().max(1));
        let cut = read(&stream, *step as usize % 7 + 1);
        assert_eq!(whole, cut);
    });
}

fn read(stream: &[u8], step: usize) -> Vec<Result<Vec<u8>, String>> {
    let mut values = Values::default();
    let mut out = Vec::new();
    for piece in stream.chunks(step) {
        values.push(piece);
        if !take(&mut values, &mut out) {
            return out;
        }
    }
    values.end();
    take(&mut values, &mut out);
    out
}

/// Takes what is whole. False after an error, which ends a stream.
fn take(values: &mut Values, out: &mut Vec<Result<Vec<u8>, String>>) -> bool {
    loop {
        match values.take_next() {
            Ok(Some(value)) => out.push(Ok(value)),
            Ok(None) => return true,
            Err(error) => {
                out.push(Err(error.to_string()));
                return false;
            }
        }
    }
}

/// Answers come from our own services, but a watch may carry anything in keys and values.
#[test]
fn message_of_any_bytes() {
    bolero::check!().with_iterations(2000).for_each(|input: &[u8]| {
        for route in http_routes() {
            let _ = json::encode(&route.output, input);
        }
    });
}
