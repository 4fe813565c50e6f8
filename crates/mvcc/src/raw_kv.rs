//! Stored `mvccpb.KeyValue`s as bytes: written in canonical form, read without copying, passed on without decoding.

use bytes::Bytes;
use proto::mvccpb::KeyValue;

/// Field `kvs` of `RangeResponse`, length-delimited.
pub(crate) const TAG_KVS: u8 = 0x12;

/// The fields of an encoded `KeyValue`, borrowed from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvFields<'a> {
    pub key: &'a [u8],
    pub create_revision: i64,
    pub mod_revision: i64,
    pub version: i64,
    pub value: &'a [u8],
    pub lease: i64,
}

impl<'a> KvFields<'a> {
    /// `None` if the bytes are not a protobuf message with these fields. Unknown fields are passed over.
    pub fn parse(mut bytes: &'a [u8]) -> Option<Self> {
        let mut kv = KvFields::default();
        while !bytes.is_empty() {
            match take_varint(&mut bytes)? {
                0x0a => kv.key = take_delimited(&mut bytes)?,
                0x10 => kv.create_revision = take_varint(&mut bytes)? as i64,
                0x18 => kv.mod_revision = take_varint(&mut bytes)? as i64,
                0x20 => kv.version = take_varint(&mut bytes)? as i64,
                0x2a => kv.value = take_delimited(&mut bytes)?,
                0x30 => kv.lease = take_varint(&mut bytes)? as i64,
                tag => skip_field(tag, &mut bytes)?,
            }
        }
        Some(kv)
    }

    /// Bytes of the canonical encoding: proto3, fields in order of their numbers, zero values left out. Hashes are
    /// compared between members, so all must write the same bytes.
    pub fn encoded_len(&self) -> usize {
        let delimited = |b: &[u8]| if b.is_empty() { 0 } else { 1 + varint_len(b.len() as u64) + b.len() };
        let number = |n: i64| if n == 0 { 0 } else { 1 + varint_len(n as u64) };
        delimited(self.key)
            + number(self.create_revision)
            + number(self.mod_revision)
            + number(self.version)
            + delimited(self.value)
            + number(self.lease)
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        put_delimited(out, 0x0a, self.key);
        put_number(out, 0x10, self.create_revision);
        put_number(out, 0x18, self.mod_revision);
        put_number(out, 0x20, self.version);
        put_delimited(out, 0x2a, self.value);
        put_number(out, 0x30, self.lease);
    }

    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.encoded_len());
        self.encode(&mut out);
        out.into()
    }

    /// As a message that shares `buffer`, which the fields must borrow from.
    pub fn to_message(&self, buffer: &Bytes) -> KeyValue {
        let share = |b: &[u8]| if b.is_empty() { Bytes::new() } else { buffer.slice_ref(b) };
        KeyValue {
            key: share(self.key),
            create_revision: self.create_revision,
            mod_revision: self.mod_revision,
            version: self.version,
            value: share(self.value),
            lease: self.lease,
        }
    }
}

/// Encoded `KeyValue`s behind one another in one buffer, each with the tag and length it has in a `RangeResponse`,
/// so that answering a range is copying the buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawKvs {
    wire: Bytes,
    len: usize,
}

impl RawKvs {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of field `kvs` of a `RangeResponse`.
    pub fn wire(&self) -> &Bytes {
        &self.wire
    }

    /// Each encoded `KeyValue`.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.wire[..];
        std::iter::from_fn(move || {
            take_varint(&mut rest)?;
            take_delimited(&mut rest)
        })
    }

    /// The decoded messages, sharing this buffer.
    pub fn decode(&self) -> Vec<KeyValue> {
        self.iter().filter_map(|raw| Some(KvFields::parse(raw)?.to_message(&self.wire))).collect()
    }

    /// The key of the last one: where a paged read goes on after.
    pub fn last_key(&self) -> Option<&[u8]> {
        self.iter().last().and_then(KvFields::parse).map(|kv| kv.key)
    }
}

/// Collects a [`RawKvs`].
#[derive(Debug, Default)]
pub(crate) struct RawKvsBuilder {
    wire: Vec<u8>,
    len: usize,
}

impl RawKvsBuilder {
    /// Adds an encoded `KeyValue`. `more` is how many are to come, from which the room for all is guessed.
    pub(crate) fn push(&mut self, raw: &[u8], more: usize) {
        self.reserve(raw.len(), more);
        self.wire.push(TAG_KVS);
        put_varint(&mut self.wire, raw.len() as u64);
        self.wire.extend_from_slice(raw);
        self.len += 1;
    }

    pub(crate) fn push_fields(&mut self, kv: &KvFields, more: usize) {
        let len = kv.encoded_len();
        self.reserve(len, more);
        self.wire.push(TAG_KVS);
        put_varint(&mut self.wire, len as u64);
        kv.encode(&mut self.wire);
        self.len += 1;
    }

    pub(crate) fn finish(self) -> RawKvs {
        RawKvs { wire: self.wire.into(), len: self.len }
    }

    fn reserve(&mut self, len: usize, more: usize) {
        const GUESS_MAX: usize = 4 << 20;
        let one = 1 + varint_len(len as u64) + len;
        if self.wire.capacity() - self.wire.len() < one {
            // Values of one range tend to be alike.
            self.wire.reserve_exact(one.saturating_mul(more + 1).min(GUESS_MAX).max(one).max(self.wire.len() / 2));
        }
    }
}

pub(crate) fn varint_len(n: u64) -> usize {
    (70 - (n | 1).leading_zeros() as usize) / 7
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

pub(crate) fn put_number(out: &mut Vec<u8>, tag: u8, n: i64) {
    if n != 0 {
        out.push(tag);
        put_varint(out, n as u64);
    }
}

pub(crate) fn put_delimited(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    if !bytes.is_empty() {
        out.push(tag);
        put_varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0u64;
    for (i, &b) in bytes.iter().enumerate().take(10) {
        n |= u64::from(b & 0x7f) << (7 * i);
        if b < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(n);
        }
    }
    None
}

fn take_delimited<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take_varint(bytes)?).ok()?;
    take(bytes, len)
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(head)
}

fn skip_field(tag: u64, bytes: &mut &[u8]) -> Option<()> {
    match tag & 7 {
        0 => take_varint(bytes).map(drop),
        1 => take(bytes, 8).map(drop),
        2 => take_delimited(bytes).map(drop),
        5 => take(bytes, 4).map(drop),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    fn samples() -> Vec<KeyValue> {
        let kv = |key: &'static [u8], n: i64, value: &'static [u8], lease| KeyValue {
            key: Bytes::from_static(key),
            create_revision: n,
            mod_revision: n.wrapping_mul(3),
            version: n / 2,
            value: Bytes::from_static(value),
            lease,
        };
        vec![
            kv(b"", 0, b"", 0),
            kv(b"k", 1, b"v", 0),
            kv(&[0xff; 127], 127, &[0; 128], 128),
            kv(&[1; 300], i64::MAX, b"", -1),
            kv(b"negative", -5, b"x", i64::MIN),
        ]
    }

    #[test]
    fn bytes_are_those_of_prost() {
        for kv in samples() {
            let bytes = Bytes::from(kv.encode_to_vec());
            let fields = KvFields::parse(&bytes).expect("parses");
            assert_eq!(fields.to_bytes(), bytes);
            assert_eq!(fields.encoded_len(), bytes.len());
            assert_eq!(fields.to_message(&bytes), kv);
        }
    }

    #[test]
    fn collects_and_gives_back() {
        let mut builder = RawKvsBuilder::default();
        for kv in samples() {
            builder.push(&kv.encode_to_vec(), 0);
        }
        let raw = builder.finish();
        assert_eq!(raw.len(), samples().len());
        assert_eq!(raw.decode(), samples());
        assert_eq!(raw.last_key(), Some(&b"negative"[..]));
    }

    #[test]
    fn passes_over_unknown_fields_and_refuses_torn_ones() {
        let known = KvFields { key: b"k", version: 7, ..Default::default() };
        let mut bytes = vec![0x78, 5, 0x7d, 1, 2, 3, 4, 0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7a, 2, 9, 9];
        known.encode(&mut bytes);
        assert_eq!(KvFields::parse(&bytes), Some(known));
        for end in 1..3 {
            assert_eq!(KvFields::parse(&bytes[..bytes.len() - end]).filter(|kv| *kv == known), None);
        }
        assert_eq!(KvFields::parse(&[0x0a, 5, 1]), None);
        assert_eq!(KvFields::parse(&[0xff; 11]), None);
        assert_eq!(KvFields::parse(&[0x0b]), None);
    }
}
