//! Unpacking of gzip, with the words that Go's package has for what is wrong.

use flate2::{Crc, Decompress, FlushDecompress, Status};

/// Why there are no bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Error {
    /// Nothing begins here.
    Begin(String),
    /// It began well.
    Read(String),
    TooLarge,
}

const HEADER_BYTES: usize = 10;
const FLAG_HEADER_SUM: u8 = 1 << 1;
const FLAG_EXTRA: u8 = 1 << 2;
const FLAG_NAME: u8 = 1 << 3;
const FLAG_COMMENT: u8 = 1 << 4;
const TRAILER_BYTES: usize = 8;
const STEP_BYTES: usize = 32 << 10;

const CUT_OFF: &str = "unexpected EOF";
const BAD_HEADER: &str = "gzip: invalid header";
const BAD_SUM: &str = "gzip: invalid checksum";

/// All parts, one behind the other.
pub(super) fn unpack(mut packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    if packed.is_empty() {
        return Err(Error::Begin("EOF".to_owned()));
    }
    skip_header(&mut packed).map_err(|why| Error::Begin(why.to_owned()))?;
    loop {
        let begin = out.len();
        inflate(&mut packed, &mut out, bytes_max)?;
        check_trailer(&mut packed, &out[begin..]).map_err(|why| Error::Read(why.to_owned()))?;
        if packed.is_empty() {
            return Ok(out);
        }
        skip_header(&mut packed).map_err(|why| Error::Read(why.to_owned()))?;
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], &'static str> {
    let (taken, left) = rest.split_at_checked(count).ok_or(CUT_OFF)?;
    *rest = left;
    Ok(taken)
}

fn skip_header(rest: &mut &[u8]) -> Result<(), &'static str> {
    let whole = *rest;
    let header = take(rest, HEADER_BYTES)?;
    if header[..3] != [0x1f, 0x8b, 8] {
        return Err(BAD_HEADER);
    }
    let flags = header[3];
    if flags & FLAG_EXTRA != 0 {
        let length = take(rest, 2)?;
        take(rest, usize::from(u16::from_le_bytes([length[0], length[1]])))?;
    }
    for flag in [FLAG_NAME, FLAG_COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0).ok_or(CUT_OFF)?;
            take(rest, end + 1)?;
        }
    }
    if flags & FLAG_HEADER_SUM != 0 {
        let mut crc = Crc::new();
        crc.update(&whole[..whole.len() - rest.len()]);
        let sum = take(rest, 2)?;
        if u32::from(u16::from_le_bytes([sum[0], sum[1]])) != crc.sum() & 0xffff {
            return Err(BAD_HEADER);
        }
    }
    Ok(())
}

fn inflate(rest: &mut &[u8], out: &mut Vec<u8>, bytes_max: usize) -> Result<(), Error> {
    let mut stream = Decompress::new(false);
    loop {
        out.reserve(STEP_BYTES);
        let before = (stream.total_in(), out.len());
        let left = &rest[before.0 as usize..];
        let status = stream.decompress_vec(left, out, FlushDecompress::None);
        let read = stream.total_in();
        if out.len() > bytes_max {
            return Err(Error::TooLarge);
        }
        match status {
            Ok(Status::StreamEnd) => {
                *rest = &rest[read as usize..];
                return Ok(());
            }
            Ok(_) if (read, out.len()) != before => {}
            Ok(_) => return Err(Error::Read(CUT_OFF.to_owned())),
            Err(_) => return Err(Error::Read(format!("flate: corrupt input before offset {read}"))),
        }
    }
}

fn check_trailer(rest: &mut &[u8], unpacked: &[u8]) -> Result<(), &'static str> {
    let trailer = take(rest, TRAILER_BYTES)?;
    let mut crc = Crc::new();
    crc.update(unpacked);
    let expected = [crc.sum().to_le_bytes(), (unpacked.len() as u32).to_le_bytes()].concat();
    if trailer == expected { Ok(()) } else { Err(BAD_SUM) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, GzBuilder};
    use test_case::test_case;

    use super::*;

    fn pack(text: &[u8]) -> Vec<u8> {
        let mut encoder =
            GzBuilder::new().filename("name").comment("comment").extra("extra").write(Vec::new(), Compression::fast());
        encoder.write_all(text).expect("to memory");
        encoder.finish().expect("to memory")
    }

    #[test]
    fn parts_follow_one_another() {
        let large = vec![7; 100_000];
        assert_eq!(unpack(&pack(&large), 100_000), Ok(large.clone()));
        assert_eq!(unpack(&[pack(b"a"), pack(b""), pack(b"bc")].concat(), 3), Ok(b"abc".to_vec()));
        assert_eq!(unpack(&pack(&large), 99_999), Err(Error::TooLarge));
    }

    /// Wherever it is cut, it is cut off, and never taken for whole.
    #[test]
    fn cut_anywhere() {
        let packed = pack(b"some text, and more text");
        for end in 1..packed.len() {
            match unpack(&packed[..end], 1000) {
                Err(Error::Begin(why) | Error::Read(why)) => assert_eq!(why, CUT_OFF, "at {end}"),
                other => panic!("at {end}: {other:?}"),
            }
        }
    }

    #[test_case(b"" => Error::Begin("EOF".to_owned()); "empty")]
    #[test_case(b"\x1f\x8b\x08" => Error::Begin(CUT_OFF.to_owned()); "half a header")]
    #[test_case(b"this is no gzip" => Error::Begin(BAD_HEADER.to_owned()); "text")]
    fn refused(packed: &[u8]) -> Error {
        unpack(packed, 1000).expect_err("refused")
    }

    #[test]
    fn a_block_of_no_kind() {
        let refused = unpack(b"\x1f\x8b\x08\0\0\0\0\0\0\0\x07more", 1000);
        assert!(matches!(&refused, Err(Error::Read(why)) if why.starts_with("flate: corrupt input")), "{refused:?}");
    }

    #[test]
    fn a_wrong_sum_or_length() {
        let packed = pack(b"text");
        for at in packed.len() - 8..packed.len() {
            let mut changed = packed.clone();
            changed[at] ^= 1;
            assert_eq!(unpack(&changed, 1000), Err(Error::Read(BAD_SUM.to_owned())));
        }
        let more = [&packed[..], b"more behind it"].concat();
        assert_eq!(unpack(&more, 1000), Err(Error::Read(BAD_HEADER.to_owned())));
    }
}
