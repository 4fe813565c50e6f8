//! Bytes to records, one segment at a time, telling a torn tail from damage.
//!
//! A crash may lose any sectors written since the last sync. Writes end on a page or with a record (see `encoder`), so
//! a lost sector either holds nothing after the end of a record or is zero throughout. Only that counts as torn. etcd
//! is more lenient: it also takes a length word with flipped bits, or a damaged record with some zero bytes, for a torn
//! tail, and drops every record after it.

use bytes::{Buf, Bytes, BytesMut};

use crate::{
    disk::DiskFile,
    error::{Error, Place},
    frame::{HEAD_BYTES_MAX, Head, HeadError, Kind, SECTOR_BYTES, WORD_BYTES, parse_head, parse_length_word},
    segment::Segment,
};

/// Read ahead: few calls, and small beside the entries.
const CHUNK_BYTES: u64 = 256 << 10;

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    pub(crate) crc: u32,
    /// Shares the chunk it was read in.
    pub(crate) data: Bytes,
    pub(crate) place: PlaceInFile,
}

/// A [`Place`] without its path, so that a record costs no allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlaceInFile {
    pub(crate) offset: u64,
    pub(crate) record: u64,
}

#[derive(Debug)]
pub(crate) enum Step {
    Record(Record),
    /// The end of the file, or zeros.
    End,
    /// The record at [`SegmentReader::offset`] was not written whole.
    Torn(String),
}

/// Reads the records of one segment in order.
#[derive(Debug)]
pub(crate) struct SegmentReader<'a> {
    segment: &'a Segment,
    size: u64,
    /// Whether a torn record is to be expected: only in the last segment, as a cut syncs the one before it.
    last: bool,
    /// What was read ahead, from `at.offset` on.
    buf: BytesMut,
    at: PlaceInFile,
    crc: u32,
}

impl<'a> SegmentReader<'a> {
    /// `crc` is the running checksum of the segments before.
    pub(crate) fn new(segment: &'a Segment, last: bool, crc: u32) -> Result<Self, Error> {
        let size = segment.file.size().map_err(Error::io("measure", &segment.path))?;
        let at = PlaceInFile { offset: 0, record: 0 };
        Ok(Self { segment, size, last, buf: BytesMut::new(), at, crc })
    }

    /// Sequence number of the segment.
    pub(crate) fn seq(&self) -> u64 {
        self.segment.name.seq
    }

    /// Just after the last good record.
    pub(crate) fn offset(&self) -> u64 {
        self.at.offset
    }

    pub(crate) fn records(&self) -> u64 {
        self.at.record
    }

    pub(crate) fn crc(&self) -> u32 {
        self.crc
    }

    pub(crate) fn place(&self, at: PlaceInFile) -> Place {
        Place { path: self.segment.path.clone(), offset: at.offset, record: at.record }
    }

    pub(crate) fn corrupt(&self, at: PlaceInFile, what: impl Into<String>) -> Error {
        Error::Corrupt { place: self.place(at), what: what.into() }
    }

    pub(crate) fn next(&mut self) -> Result<Step, Error> {
        let left = self.size - self.at.offset;
        self.fill(left.min(WORD_BYTES))?;
        let Some(word) = self.buf.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)) else {
            // A file cut short inside a length word.
            let torn = self.buf.iter().any(|&byte| byte != 0);
            return if torn { self.torn("the file ends inside a length word") } else { Ok(Step::End) };
        };
        if word == 0 {
            return self.end();
        }
        let Some((record_bytes, pad)) = parse_length_word(word) else {
            return Err(self.corrupt(self.at, format!("length word {word:#018x} has the wrong padding")));
        };
        self.fill(left.min(WORD_BYTES + record_bytes.min(HEAD_BYTES_MAX as u64)))?;
        let head = match self.head(record_bytes) {
            Ok(head) => head.filter(|_| left - WORD_BYTES >= record_bytes + pad),
            Err((reach, what)) => return self.torn_or_corrupt(reach, what),
        };
        let Some(head) = head else {
            return self.torn(format!("the record needs {record_bytes} bytes, the file ends before"));
        };
        self.fill(WORD_BYTES + record_bytes + pad)?;
        self.record(head, record_bytes, pad)
    }

    /// The header; `None` if the file ends inside it. An error says how many bytes it rests on.
    fn head(&self, record_bytes: u64) -> Result<Option<Head>, (u64, String)> {
        let have = &self.buf[WORD_BYTES as usize..];
        let have = &have[..have.len().min(record_bytes as usize)];
        match parse_head(have, record_bytes) {
            Ok(head) if head.record_bytes() == record_bytes => Ok(Some(head)),
            Ok(head) => {
                let found = head.record_bytes();
                Err((head.data_start, format!("the length word says {record_bytes} bytes, the record {found}")))
            }
            Err(HeadError::Short) if (have.len() as u64) < record_bytes => Ok(None),
            Err(HeadError::Short) => Err((record_bytes, "the record ends inside its header".into())),
            Err(HeadError::Malformed(reach)) => Err((reach, "not a record".into())),
        }
    }

    /// Checks the record that is whole in the buffer, and steps over it.
    fn record(&mut self, head: Head, record_bytes: u64, pad: u64) -> Result<Step, Error> {
        let body = &self.buf[WORD_BYTES as usize..(WORD_BYTES + record_bytes + pad) as usize];
        let (record, padding) = body.split_at(record_bytes as usize);
        let is_crc = head.kind == Kind::Crc as u64;
        let computed = crc32c::crc32c_append(self.crc, &record[head.data_start as usize..]);
        if !is_crc && computed != head.crc {
            return match self.torn_or_corrupt(record_bytes, "crc mismatch".into()) {
                Err(Error::Corrupt { place, .. }) => Err(Error::CrcMismatch { place, expected: head.crc, computed }),
                other => other,
            };
        }
        if padding.iter().any(|&byte| byte != 0) {
            return Err(self.corrupt(self.at, "padding that is not zero"));
        }
        let Some(kind) = Kind::from_number(head.kind) else {
            return Err(Error::UnexpectedType { place: self.place(self.at), kind: head.kind });
        };
        if kind == Kind::Crc && head.data_bytes > 0 {
            return Err(self.corrupt(self.at, "a crc record with data"));
        }
        let crc = if is_crc { head.crc } else { computed };
        Ok(Step::Record(self.take(kind, crc, head, record_bytes + pad)))
    }

    fn take(&mut self, kind: Kind, crc: u32, head: Head, body_bytes: u64) -> Record {
        let mut data = self.buf.split_to((WORD_BYTES + body_bytes) as usize);
        data.truncate((WORD_BYTES + head.record_bytes()) as usize);
        data.advance((WORD_BYTES + head.data_start) as usize);
        let place = self.at;
        self.at = PlaceInFile { offset: place.offset + WORD_BYTES + body_bytes, record: place.record + 1 };
        self.crc = crc;
        Record { kind, crc: head.crc, data: data.freeze(), place }
    }

    /// A zero length word: nothing was written from here on, so the rest of its sector is zero too.
    fn end(&mut self) -> Result<Step, Error> {
        let sector_end = (self.at.offset / SECTOR_BYTES + 1) * SECTOR_BYTES;
        let rest = sector_end.min(self.size) - self.at.offset;
        self.fill(rest)?;
        if self.buf[..rest as usize].iter().any(|&byte| byte != 0) {
            return Err(self.corrupt(self.at, "a length word of zero with data behind it"));
        }
        Ok(Step::End)
    }

    /// Torn if a sector that begins in the first `reach` bytes of the record is zero throughout.
    fn torn_or_corrupt(&self, reach: u64, what: String) -> Result<Step, Error> {
        let start = self.at.offset + WORD_BYTES;
        let first = start.div_ceil(SECTOR_BYTES) * SECTOR_BYTES;
        let end = start.saturating_add(reach).min(self.size);
        let mut sector = [0; SECTOR_BYTES as usize];
        for offset in (first..end).step_by(SECTOR_BYTES as usize) {
            let read = read_at(self.segment, &mut sector, offset)?;
            if sector[..read].iter().all(|&byte| byte == 0) {
                return self.torn(format!("{what}, and the sector at {offset} was never written"));
            }
        }
        Err(self.corrupt(self.at, what))
    }

    fn torn(&self, what: impl Into<String>) -> Result<Step, Error> {
        if self.last {
            return Ok(Step::Torn(what.into()));
        }
        Err(Error::TornMiddle { place: self.place(self.at), what: what.into() })
    }

    /// Makes at least `count` bytes available in the buffer; the file is known to have them.
    fn fill(&mut self, count: u64) -> Result<(), Error> {
        let have = self.buf.len() as u64;
        if have >= count {
            return Ok(());
        }
        let left = self.size - self.at.offset - have;
        let want = (count - have).max(CHUNK_BYTES).min(left) as usize;
        let start = self.buf.len();
        self.buf.resize(start + want, 0);
        let offset = self.at.offset + have;
        let read = read_at(self.segment, &mut self.buf[start..], offset)?;
        if (start + read) < count as usize {
            // It shrank since it was measured: somebody else works on it.
            return Err(self.corrupt(self.at, "the file became shorter while it was read"));
        }
        self.buf.truncate(start + read);
        Ok(())
    }
}

fn read_at(segment: &Segment, buf: &mut [u8], offset: u64) -> Result<usize, Error> {
    let file: &dyn DiskFile = segment.file.as_ref();
    file.read_at(buf, offset).map_err(Error::io("read", &segment.path))
}
