//! One event, encoded once for all who watch its key.

use std::sync::OnceLock;

use bytes::Bytes;

use crate::{
    raw_kv::{KvFields, put_delimited, put_varint, varint_len},
    store::Shared,
};

const TAG_TYPE: u8 = 0x08;
const TAG_KV: u8 = 0x12;
const TAG_PREV_KV: u8 = 0x1a;
const DELETE: u8 = 1;

/// A change of a key, as encoded `mvccpb.Event`.
#[derive(Debug)]
pub(crate) struct Event {
    pub revision: i64,
    /// Whether there is no previous value to tell.
    is_create: bool,
    key: Bytes,
    plain: Bytes,
    /// With the previous value; made when the first watcher that wants it takes the event.
    with_previous: OnceLock<Bytes>,
}

impl Event {
    /// From a record of bucket `key`. `None` if it is not one.
    pub(crate) fn new(revision: i64, is_delete: bool, raw: &[u8]) -> Option<Self> {
        let kv = KvFields::parse(raw)?;
        let is_create = !is_delete && kv.create_revision == kv.mod_revision;
        let (plain, kv_at) = if is_delete {
            // A tombstone is stored without its revision.
            encode_delete(&KvFields { key: kv.key, mod_revision: revision, ..Default::default() })
        } else {
            encode_put(raw)
        };
        let key = plain.slice_ref(KvFields::parse(&plain[kv_at..])?.key);
        Some(Event { revision, is_create, key, plain, with_previous: OnceLock::new() })
    }

    /// Bytes it holds on to.
    pub(crate) fn len(&self) -> usize {
        self.plain.len()
    }

    /// The encoded event.
    pub(crate) fn bytes(&self) -> Bytes {
        self.plain.clone()
    }

    /// The encoded event with what the key was before, unless that is compacted by now.
    pub(crate) fn bytes_with_previous(&self, store: &Shared) -> Bytes {
        if self.is_create {
            return self.plain.clone();
        }
        self.with_previous
            .get_or_init(|| match store.value_at(&self.key, self.revision - 1) {
                Some(previous) => append_previous(&self.plain, &previous),
                None => self.plain.clone(),
            })
            .clone()
    }
}

/// The event, and where its `KeyValue` begins.
fn encode_put(raw: &[u8]) -> (Bytes, usize) {
    let kv_at = 1 + varint_len(raw.len() as u64);
    let mut out = Vec::with_capacity(kv_at + raw.len());
    out.push(TAG_KV);
    put_varint(&mut out, raw.len() as u64);
    out.extend_from_slice(raw);
    (out.into(), kv_at)
}

fn encode_delete(kv: &KvFields<'_>) -> (Bytes, usize) {
    let len = kv.encoded_len();
    let kv_at = 3 + varint_len(len as u64);
    let mut out = Vec::with_capacity(kv_at + len);
    out.extend_from_slice(&[TAG_TYPE, DELETE, TAG_KV]);
    put_varint(&mut out, len as u64);
    kv.encode(&mut out);
    (out.into(), kv_at)
}

fn append_previous(plain: &[u8], previous: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(plain.len() + 1 + varint_len(previous.len() as u64) + previous.len());
    out.extend_from_slice(plain);
    put_delimited(&mut out, TAG_PREV_KV, previous);
    out.into()
}

impl Shared {
    /// The stored bytes of a key as it was at a revision; `None` if it did not exist or is compacted.
    fn value_at(&self, key: &[u8], at: i64) -> Option<Bytes> {
        let read = self.read(false, |reader| reader.get_raw(key, at));
        read.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use proto::mvccpb::{self, KeyValue};

    use super::*;

    #[test]
    fn bytes_are_those_of_the_message() {
        let kv = KeyValue { key: "k".into(), create_revision: 3, mod_revision: 5, version: 2, ..Default::default() };
        let put = Event::new(5, false, &kv.encode_to_vec()).expect("an event");
        let want = mvccpb::Event { r#type: 0, kv: Some(kv.clone()), prev_kv: None };
        assert_eq!(put.bytes(), want.encode_to_vec());
        assert_eq!(put.key, "k");

        let tombstone = KeyValue { key: "k".into(), ..Default::default() };
        let delete = Event::new(9, true, &tombstone.encode_to_vec()).expect("an event");
        let kv_of_delete = KeyValue { key: "k".into(), mod_revision: 9, ..Default::default() };
        let want = mvccpb::Event { r#type: 1, kv: Some(kv_of_delete.clone()), prev_kv: None };
        assert_eq!(delete.bytes(), want.encode_to_vec());
        assert_eq!(delete.key, "k");

        let want = mvccpb::Event { r#type: 1, kv: Some(kv_of_delete), prev_kv: Some(kv.clone()) };
        assert_eq!(append_previous(&delete.bytes(), &kv.encode_to_vec()), want.encode_to_vec());
    }
}
