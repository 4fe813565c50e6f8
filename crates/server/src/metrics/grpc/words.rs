//! What cannot be decoded is answered in the words of grpc-go and of Go's protobuf: people search for them.

use http::HeaderMap;
use tonic::{Code, Status};

use crate::metrics::methods::METHODS;

/// How prost begins whatever it says.
const CANNOT_DECODE: &str = "failed to decode Protobuf message";
/// Go's protobuf says no more than that.
const WHY: &str = "proto: cannot parse invalid wire-format data";

/// Changes the text of a status that says that a message could not be decoded.
pub(super) fn reword(headers: &mut HeaderMap, method: usize) {
    // A few bytes of all other answers are looked at, and no text is decoded.
    if headers.get(Status::GRPC_STATUS).is_none_or(|code| code != "13") {
        return;
    }
    let Some(status) = Status::from_header_map(headers) else { return };
    if !status.message().starts_with(CANNOT_DECODE) {
        return;
    }
    let who = if METHODS[method].2 == "unary" {
        "error unmarshalling request"
    } else {
        "failed to unmarshal the received message"
    };
    let reworded = Status::new(Code::Internal, format!("grpc: {who}: {WHY}"));
    // Without a text of its own a status always fits into headers.
    let _ = reworded.add_header(headers);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_prost_says() {
        let reworded = |code, text: String, kind| {
            let mut headers = HeaderMap::new();
            Status::new(code, text).add_header(&mut headers).expect("a text");
            let method = METHODS.iter().position(|method| method.2 == kind).expect("such a method");
            reword(&mut headers, method);
            Status::from_header_map(&headers).expect("a status").message().to_owned()
        };
        let prost = <proto::etcdserverpb::RangeRequest as prost::Message>::decode(&b"\xff"[..]).expect_err("cut off");
        let unary = reworded(Code::Internal, prost.to_string(), "unary");
        assert_eq!(unary, "grpc: error unmarshalling request: proto: cannot parse invalid wire-format data");
        let stream = reworded(Code::Internal, prost.to_string(), "bidi_stream");
        assert_eq!(
            stream,
            "grpc: failed to unmarshal the received message: proto: cannot parse invalid wire-format data"
        );
        assert_eq!(reworded(Code::Internal, "other".to_owned(), "unary"), "other");
        assert_eq!(reworded(Code::Unknown, prost.to_string(), "unary"), prost.to_string());
    }
}
