//! Streams, headers and snapshots of peers, of any content: messages or an error, never a panic, and never more memory
//! than was sent.

use std::sync::LazyLock;

use bytes::{Bytes, BytesMut};
use fuzz::{damage, pieces};
use http::{HeaderMap, HeaderName, HeaderValue};
use membership::{ClusterId, MemberId};
use peer::{
    Identity,
    codec::{Decoder, Encoder, MessageDecoder, StreamKind, encode_framed, is_link_heartbeat, link_heartbeat},
    header, route,
    url::PeerUrl,
};
use proto::raftpb::{Entry, Message, MessageType, Snapshot, SnapshotMetadata};

const LIMIT: u64 = 1 << 20;

/// Appends as a leader sends them, so that both forms of the MsgApp stream are there.
static APPENDS: LazyLock<Vec<Message>> = LazyLock::new(|| {
    let entry = |index: u64| Entry {
        r#type: Some(0),
        term: Some(1 + index / 8),
        index: Some(index),
        data: Some(Bytes::from(vec![index as u8; 3 * index as usize])),
    };
    let append = |i: u64| Message {
        r#type: Some(MessageType::MsgApp as i32),
        from: Some(1),
        to: Some(2),
        term: Some(1 + (i + 1) / 8),
        log_term: Some(1 + i / 8),
        index: Some(i),
        commit: Some(i),
        entries: vec![entry(i + 1)],
        ..Message::default()
    };
    (0..20).map(append).collect()
});

fn stream(kind: StreamKind) -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::new(kind), BytesMut::new());
    for message in APPENDS.iter() {
        encoder.encode(message, &mut out);
        encoder.encode(&link_heartbeat(), &mut out);
    }
    out.to_vec()
}

/// What a decoder finds in `bytes` that come in pieces of `size`, up to the first error.
fn decode(kind: StreamKind, bytes: &[u8], size: usize) -> (Vec<Message>, bool) {
    let mut decoder = Decoder::new(kind, MemberId(2), MemberId(1), LIMIT);
    let mut found = Vec::new();
    for piece in bytes.chunks(size.max(1)) {
        decoder.push(Bytes::copy_from_slice(piece));
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => found.push(message),
                Ok(None) => break,
                Err(_) => return (found, false),
            }
        }
    }
    (found, true)
}

fn exercise(bytes: &[u8], size: usize) {
    for kind in [StreamKind::MsgApp, StreamKind::Message] {
        let whole = decode(kind, bytes, usize::MAX);
        assert_eq!(decode(kind, bytes, size), whole, "how bytes are cut changes nothing");
        for message in whole.0.iter().filter(|m| !is_link_heartbeat(m)) {
            let _ = route::check_received(message, MemberId(2), |id| id.0 == 9);
            let mut again = BytesMut::new();
            encode_framed(message, &mut again);
            assert_eq!(decode(StreamKind::Message, &again, 7).0, std::slice::from_ref(message));
        }
    }
}

#[test]
fn streams_of_any_bytes() {
    bolero::check!().with_iterations(5000).for_each(|input: &[u8]| exercise(input, 3));
}

#[test]
fn damaged_streams() {
    let streams = [stream(StreamKind::MsgApp), stream(StreamKind::Message)];
    bolero::check!().with_iterations(3000).with_max_len(64).for_each(|input: &[u8]| {
        let Some((&which, script)) = input.split_first() else { return };
        exercise(&damage(&streams[usize::from(which % 2)], script), usize::from(which / 2) + 1);
    });
}

/// What was sent in any order arrives, by either stream.
#[test]
fn any_order_of_messages() {
    bolero::check!().with_iterations(3000).with_max_len(64).for_each(|input: &[u8]| {
        for kind in [StreamKind::MsgApp, StreamKind::Message] {
            let sent: Vec<_> = input.iter().map(|i| APPENDS[usize::from(*i) % APPENDS.len()].clone()).collect();
            let (mut encoder, mut out) = (Encoder::new(kind), BytesMut::new());
            sent.iter().for_each(|message| encoder.encode(message, &mut out));
            assert_eq!(decode(kind, &out, 50), (sent, true));
        }
    });
}

#[test]
fn snapshot_heads() {
    let metadata = SnapshotMetadata { index: Some(7), term: Some(2), ..Default::default() };
    let snapshot = Some(Snapshot { data: Some(vec![1; 40].into()), metadata: Some(metadata) });
    let kind = Some(MessageType::MsgSnap as i32);
    let mut valid = BytesMut::new();
    encode_framed(&Message { r#type: kind, from: Some(1), to: Some(2), snapshot, ..Default::default() }, &mut valid);
    valid.extend_from_slice(b"a database");
    bolero::check!().with_iterations(5000).with_max_len(64).for_each(|input: &[u8]| {
        for bytes in [input.to_vec(), damage(&valid, input)] {
            let mut decoder = MessageDecoder::new(1000);
            decoder.push(bytes.clone().into());
            if let Ok(Some(_)) = decoder.next_message() {
                let rest = decoder.into_rest();
                assert!(bytes.ends_with(&rest) && bytes.len() >= 8 + rest.len());
            }
        }
    });
}

#[test]
fn headers_and_urls() {
    let identity = Identity {
        local: MemberId(1),
        cluster: ClusterId(0xc1),
        server_version: "3.8.0".into(),
        min_cluster_version: "3.0.0".into(),
        peer_urls: vec!["http://a:1".into()],
        lockgate_version: "3.8.0".into(),
    };
    let names = [header::SERVER_FROM, header::SERVER_VERSION, header::MIN_CLUSTER_VERSION, header::PEER_URLS];
    bolero::check!().with_iterations(5000).for_each(|input: &[u8]| {
        let mut headers = identity.request_headers();
        for (piece, name) in pieces(input).into_iter().zip(names.iter().cycle()) {
            set(&mut headers, name, piece);
            if let Ok(url) = String::from_utf8_lossy(piece).parse::<PeerUrl>() {
                assert_eq!(url.to_string().parse(), Ok(url));
            }
        }
        let _ = header::supports_streams(&headers);
        if let Some((_, urls)) = header::sender(&headers) {
            assert!(!urls.is_empty());
        }
        if identity.check(&headers).is_ok() {
            assert_eq!(header::text(&headers, &header::CLUSTER_ID), "c1");
        }
    });
}

fn set(headers: &mut HeaderMap, name: &HeaderName, value: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(value) {
        headers.insert(name.clone(), value);
    }
}
