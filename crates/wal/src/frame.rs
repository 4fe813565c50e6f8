//! Framing: the length word, the record header inside it, and the sizes that torn-write detection rests on.

/// The smallest unit a disk writes whole.
pub(crate) const SECTOR_BYTES: u64 = 512;
/// Writes end on this boundary unless they end with a record.
pub(crate) const PAGE_BYTES: u64 = 8 * SECTOR_BYTES;
/// Bytes of the length word in front of each record.
pub(crate) const WORD_BYTES: u64 = 8;
/// The longest record header: three tags, two ten-byte varints (type, data length) and a five-byte one (crc).
pub(crate) const HEAD_BYTES_MAX: usize = 28;

/// `walpb.Record.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Metadata = 1,
    Entry = 2,
    State = 3,
    Crc = 4,
    Snapshot = 5,
}

impl Kind {
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        Some(match number {
            1 => Self::Metadata,
            2 => Self::Entry,
            3 => Self::State,
            4 => Self::Crc,
            5 => Self::Snapshot,
            _ => return None,
        })
    }
}

fn pad_for(record_bytes: u64) -> u64 {
    (8 - record_bytes % 8) % 8
}

/// The length word of a record and how many zero bytes follow it. Records start on 8 bytes, so that a length word
/// never lies across two sectors.
pub(crate) fn length_word(record_bytes: u64) -> (u64, usize) {
    let pad = pad_for(record_bytes);
    let word = if pad == 0 { record_bytes } else { record_bytes | (0x80 | pad) << 56 };
    (word, pad as usize)
}

/// Record bytes and padding of a length word; `None` for a word that no writer makes.
pub(crate) fn parse_length_word(word: u64) -> Option<(u64, u64)> {
    let record_bytes = word & (u64::MAX >> 8);
    let (expected, pad) = length_word(record_bytes);
    (word == expected).then_some((record_bytes, pad as u64))
}

/// What a record says before its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: u64,
    pub(crate) crc: u32,
    pub(crate) data_start: u64,
    pub(crate) data_bytes: u64,
}

impl Head {
    pub(crate) fn record_bytes(&self) -> u64 {
        self.data_start.saturating_add(self.data_bytes)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadError {
    /// The bytes end inside the header.
    Short,
    /// Not the three fields of a record in their order; how many bytes were looked at.
    Malformed(u64),
}

/// Reads the header of a record of `record_bytes` bytes, of which `bytes` are the first. Every etcd writes type, crc
/// and data in this order; anything else is damage that a lenient protobuf reader would pass over.
pub(crate) fn parse_head(bytes: &[u8], record_bytes: u64) -> Result<Head, HeadError> {
    let mut at = 0;
    let kind = parse_field(bytes, &mut at, 0x08)?;
    let crc = parse_field(bytes, &mut at, 0x10)?;
    let crc = u32::try_from(crc).map_err(|_| HeadError::Malformed(at as u64))?;
    if at as u64 == record_bytes {
        return Ok(Head { kind, crc, data_start: record_bytes, data_bytes: 0 });
    }
    let data_bytes = parse_field(bytes, &mut at, 0x1a)?;
    Ok(Head { kind, crc, data_start: at as u64, data_bytes })
}

fn parse_field(bytes: &[u8], at: &mut usize, tag: u8) -> Result<u64, HeadError> {
    match bytes.get(*at) {
        None => return Err(HeadError::Short),
        Some(&found) if found != tag => return Err(HeadError::Malformed(*at as u64 + 1)),
        Some(_) => *at += 1,
    }
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(HeadError::Short)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(HeadError::Malformed(*at as u64))
}

/// A few bytes built on the stack: headers of records and entries, without an allocation each.
#[derive(Debug)]
pub(crate) struct Short {
    bytes: [u8; 40],
    used: usize,
}

impl Short {
    pub(crate) fn new() -> Self {
        Self { bytes: [0; 40], used: 0 }
    }

    /// One varint field. At most three fields of eleven bytes and a data length fit, which is all an entry has.
    pub(crate) fn field(mut self, tag: u8, mut value: u64) -> Self {
        self.push(tag);
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
        self
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.used] = byte;
        self.used += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_words_are_those_in_files_of_etcd() {
        assert_eq!(length_word(4), (0x8400_0000_0000_0004, 4));
        assert_eq!(length_word(32), (0x20, 0));
        assert_eq!(length_word(0x73), (0x8500_0000_0000_0073, 5));
        assert_eq!(parse_length_word(0x8500_0000_0000_0073), Some((0x73, 5)));
    }

    #[test]
    fn a_length_word_with_a_flipped_pad_is_refused() {
        assert_eq!(parse_length_word(0x8400_0000_0000_0073), None);
        assert_eq!(parse_length_word(0x0500_0000_0000_0073), None);
        assert_eq!(parse_length_word(0x73), None);
        assert_eq!(parse_length_word(0xc500_0000_0000_0073), None);
    }

    #[test]
    fn heads() {
        let crc_record = [0x08, 0x04, 0x10, 0x00];
        let expected = Head { kind: 4, crc: 0, data_start: 4, data_bytes: 0 };
        assert_eq!(parse_head(&crc_record, 4), Ok(expected));
        assert_eq!(parse_head(&crc_record, 5), Err(HeadError::Short));
        assert_eq!(parse_head(&crc_record[..3], 4), Err(HeadError::Short));
        assert_eq!(parse_head(&[0x10, 0x04], 4), Err(HeadError::Malformed(1)));
        assert_eq!(parse_head(&[0x08, 0x02, 0x10, 0xff, 0xff, 0xff, 0xff, 0x1f], 20), Err(HeadError::Malformed(8)));
        let endless = [&[0x08][..], &[0x80; 12]].concat();
        assert_eq!(parse_head(&endless, 40), Err(HeadError::Malformed(11)));
    }

    #[test]
    fn the_longest_entry_head_fits() {
        let short = Short::new().field(0x08, 2).field(0x10, u64::MAX).field(0x18, u64::MAX).field(0x22, u64::MAX);
        assert_eq!(short.as_slice().len(), 2 + 11 * 3);
    }
}
