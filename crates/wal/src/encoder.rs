//! Records to bytes: one buffer, one running checksum, writes that end on a page or with a record.

use std::io;

use bytes::Bytes;
use prost::Message;
use proto::{raftpb, walpb};

use crate::{
    disk::DiskFile,
    frame::{Kind, PAGE_BYTES, Short, length_word},
};

/// Whole pages go to the file when this much is buffered, so that a huge batch does not stay in memory twice.
const SPILL_BYTES: usize = 1 << 20;
/// A buffer that a huge entry made larger than this is given back.
const KEEP_BYTES: usize = 4 << 20;

/// Appends records after `offset` of one file.
#[derive(Debug)]
pub(crate) struct Encoder {
    buf: Vec<u8>,
    /// CRC32C over the data of all records so far, from the first segment on.
    crc: u32,
    /// Where in the file `buf` begins.
    offset: u64,
}

impl Encoder {
    pub(crate) fn new(offset: u64, crc: u32) -> Self {
        Self { buf: Vec::with_capacity(PAGE_BYTES as usize), crc, offset }
    }

    /// Starts over in a new file; the checksum goes on.
    pub(crate) fn next_file(&mut self) {
        debug_assert!(self.buf.is_empty(), "records of the old file must be flushed first");
        self.offset = 0;
    }

    /// Where the next record begins, counting what is still buffered.
    pub(crate) fn end(&self) -> u64 {
        self.offset + self.buf.len() as u64
    }

    /// The record that opens a file and hands the checksum on to it. It has no data field.
    pub(crate) fn crc(&mut self) {
        let head = Short::new().field(0x08, Kind::Crc as u64).field(0x10, self.crc.into());
        self.frame(head.as_slice(), &[], &[]);
    }

    pub(crate) fn metadata(&mut self, metadata: &[u8]) {
        self.record(Kind::Metadata, metadata, &[]);
    }

    /// The bytes etcd 3.7 writes: the type only if it is not normal, the data only if there is any. Earlier versions
    /// write a zero type too; all of them read both.
    pub(crate) fn entry(&mut self, entry: &raftpb::Entry) {
        let mut head = Short::new();
        if entry.r#type.unwrap_or_default() != 0 {
            head = head.field(0x08, entry.r#type.unwrap_or_default() as u64);
        }
        head = head.field(0x10, entry.term()).field(0x18, entry.index());
        let data = entry.data.as_ref().map_or(&[][..], Bytes::as_ref);
        if !data.is_empty() {
            head = head.field(0x22, data.len() as u64);
        }
        self.record(Kind::Entry, head.as_slice(), data);
    }

    /// All three fields, also when zero, as every etcd does.
    pub(crate) fn state(&mut self, state: &raftpb::HardState) {
        let data = Short::new().field(0x08, state.term()).field(0x10, state.vote()).field(0x18, state.commit());
        self.record(Kind::State, data.as_slice(), &[]);
    }

    pub(crate) fn snapshot(&mut self, snapshot: &walpb::Snapshot) {
        self.record(Kind::Snapshot, &snapshot.encode_to_vec(), &[]);
    }

    /// Writes whole pages if much is buffered. Bytes written.
    pub(crate) fn spill(&mut self, file: &dyn DiskFile) -> io::Result<usize> {
        if self.buf.len() < SPILL_BYTES {
            return Ok(0);
        }
        let keep = (self.end() % PAGE_BYTES) as usize;
        self.write(file, self.buf.len() - keep)
    }

    /// Writes everything buffered. Bytes written.
    pub(crate) fn flush(&mut self, file: &dyn DiskFile) -> io::Result<usize> {
        let written = self.write(file, self.buf.len())?;
        self.buf.shrink_to(KEEP_BYTES);
        Ok(written)
    }

    fn write(&mut self, file: &dyn DiskFile, count: usize) -> io::Result<usize> {
        if count > 0 {
            file.write_all_at(&self.buf[..count], self.offset)?;
            self.buf.drain(..count);
            self.offset += count as u64;
        }
        Ok(count)
    }

    /// The data comes in two parts so that an entry's payload is copied once, into the buffer.
    fn record(&mut self, kind: Kind, first: &[u8], second: &[u8]) {
        self.crc = crc32c::crc32c_append(crc32c::crc32c_append(self.crc, first), second);
        let head = Short::new()
            .field(0x08, kind as u64)
            .field(0x10, self.crc.into())
            .field(0x1a, (first.len() + second.len()) as u64);
        self.frame(head.as_slice(), first, second);
    }

    fn frame(&mut self, head: &[u8], first: &[u8], second: &[u8]) {
        let (word, pad) = length_word((head.len() + first.len() + second.len()) as u64);
        self.buf.extend_from_slice(&word.to_le_bytes());
        self.buf.extend_from_slice(head);
        self.buf.extend_from_slice(first);
        self.buf.extend_from_slice(second);
        self.buf.extend_from_slice(&[0; 8][..pad]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first 0x128 bytes of a log of etcd 3.7.3: crc, metadata, snapshot, a conf change, states, an empty entry.
    const HEX: &str = "\
        0400000000000084080410000000000020000000000000000801\
        10ff8ce69f0b1a1608ce93a2fc9bc6c9a699011080a9d9d388dac6b0cb01\
        0e0000000000008208051085 9aead50c1a0408001000 0000\
        73000000000000850802108bb5fdf2041a69080110011801226110 0018ce93a2fc9bc6c9a6990122527b226964223a31\
        3130343635323734353631313833343431 34322c227065657255524c73223a5b22687474703a2f2f3132372e302e302e\
        313a3233393932225d2c226e616d65223a2264656661756c74227d0000000000\
        10000000000000000803 10e49a9383071a06080110001801\
        190000000000008708031 0ec88ab8e0c1a0f080210ce93a2fc9bc6c9a69901180100000000000000\
        0d00000000000083080210ac95f30c1a0410021802000000";

    fn unhex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn the_same_bytes_as_etcd() {
        let id = 0x994d_2631_bf88_89ce;
        let mut conf_change = vec![0x10, 0x00, 0x18, 0xce, 0x93, 0xa2, 0xfc, 0x9b, 0xc6, 0xc9, 0xa6, 0x99, 0x01, 0x22];
        let context = r#"{"id":11046527456118344142,"peerURLs":["http://127.0.0.1:23992"],"name":"default"}"#;
        conf_change.push(context.len() as u8);
        conf_change.extend_from_slice(context.as_bytes());
        let entry = |r#type, term, index, data| raftpb::Entry { r#type, term: Some(term), index: Some(index), data };
        let state = |term, vote, commit| raftpb::HardState { term: Some(term), vote: Some(vote), commit: Some(commit) };
        let expected = unhex(HEX);

        let mut encoder = Encoder::new(0, 0);
        encoder.crc();
        encoder.metadata(&expected[0x22..0x38]);
        encoder.snapshot(&walpb::Snapshot { index: Some(0), term: Some(0), conf_state: None });
        encoder.entry(&entry(Some(1), 1, 1, Some(conf_change.into())));
        encoder.state(&state(1, 0, 1));
        encoder.state(&state(2, id, 1));
        encoder.entry(&entry(Some(0), 2, 2, Some(Bytes::new())));
        assert_eq!(encoder.buf, expected);
    }
}
