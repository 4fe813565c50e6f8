//! Whatever bytes come in, nothing panics, and what is read back is what was written.

use proptest::{collection::vec, prelude::*, sample::select};
use prost::Message;
use proto::{
    MinVersion, json, min_version_named, min_version_of_entry, min_version_of_request, pool,
    raftpb::{Entry, EntryType},
};

fn message_name() -> impl Strategy<Value = String> {
    let names: Vec<_> = pool()
        .all_messages()
        .filter(|m| proto::PACKAGES.contains(&m.package_name()))
        .map(|m| m.full_name().to_owned())
        .collect();
    select(names)
}

/// Bytes that often look like fields of a message.
fn wire() -> impl Strategy<Value = Vec<u8>> {
    let leaf = (1u8..16, 0u8..8, vec(any::<u8>(), 0..12)).prop_map(|(number, kind, bytes)| match kind {
        0 | 1 => vec![number << 3, bytes.first().map_or(0, |b| b & 0x0f)],
        2..=5 => [vec![number << 3 | 2, bytes.len() as u8], bytes].concat(),
        _ => [vec![number << 3 | kind], bytes].concat(),
    });
    leaf.prop_recursive(5, 64, 4, |inner| {
        (1u8..16, vec(inner, 0..4)).prop_map(|(number, parts)| {
            let body = parts.concat();
            let mut out = vec![number << 3 | 2];
            prost::encoding::encode_varint(body.len() as u64, &mut out);
            [out, body].concat()
        })
    })
}

/// Text that often looks like JSON of a message.
fn text() -> impl Strategy<Value = String> {
    let words = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"key\"",
        "\"success\"",
        "\"request_put\"",
        "\"limit\"",
        "\"YQ==\"",
        "1",
        "-1",
        "1e9",
        "0.5",
        "null",
        "true",
        "\"\\u00e9\"",
        "\"\\ud800\"",
        " ",
        "\n",
        "\"",
        "\\",
        "é",
    ];
    vec(select(words.to_vec()), 0..24).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_never_panic(name in message_name(), bytes in prop_oneof![vec(any::<u8>(), 0..64), wire()]) {
        let version = min_version_named(&name, &bytes);
        let written = json::encode(&name, &bytes);
        // What both read, JSON can carry: the same message comes back, up to fields it does not know.
        if let (Ok(MinVersion::Known(version)), Ok(text)) = (version, written) {
            let again = json::decode(&name, &text).unwrap();
            prop_assert_eq!(json::encode(&name, &again).unwrap(), text);
            let after = min_version_named(&name, &again).unwrap();
            prop_assert!(matches!(after, MinVersion::Known(v) if v <= version), "{:?} after {}", after, version);
        }
    }

    #[test]
    fn entries_never_panic(kind in -1i32..4, data in prop_oneof![vec(any::<u8>(), 0..64), wire()]) {
        let _ = min_version_of_entry(&Entry { r#type: Some(kind), data: Some(data.clone().into()), ..Default::default() });
        // What etcd's reading order would reject, prost rejects too.
        if min_version_of_request(&data).is_ok() && kind == i32::from(EntryType::EntryNormal) {
            prop_assert!(proto::etcdserverpb::InternalRaftRequest::decode(data.as_slice()).is_ok());
        }
    }

    #[test]
    fn text_never_panics(name in message_name(), text in prop_oneof![text(), any::<String>()], cut in any::<usize>()) {
        let _ = json::decode(&name, text.as_bytes());
        let (head, tail) = text.as_bytes().split_at(cut % (text.len() + 1));
        let mut values = json::Values::default();
        values.push(head);
        let early = values.take_next();
        values.push(tail);
        values.end();
        if let Ok(None) = early {
            let _ = values.take_next();
        }
    }
}
