//! The encoding of the MsgApp stream (msgappv2). Three forms, told apart by the first byte:
//!
//! | form | bytes |
//! |---|---|
//! | 0 link heartbeat | – |
//! | 1 entries | u64 count, then for each entry u64 length and the entry, then u64 commit index |
//! | 2 message | u64 length, then the whole message |
//!
//! Invariant: both ends keep the same (term, index) of the last entry sent. Form 1 leaves out what follows from it, so
//! it may only be used for a message that continues there in the same term.

use bytes::{BufMut, Bytes, BytesMut};
use membership::MemberId;
use prost::Message as _;
use proto::raftpb::{Entry, Message, MessageType};

use super::{DecodeError, Input, decode_message, is_link_heartbeat, link_heartbeat};

const LINK_HEARTBEAT: u8 = 0;
const ENTRIES: u8 = 1;
const MESSAGE: u8 = 2;

/// Where a stream stands: the term of its last message, the index of its last entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Position {
    term: u64,
    index: u64,
}

impl Position {
    fn after(message: &Message) -> Position {
        let index = message.entries.last().map_or(message.index(), Entry::index);
        Position { term: message.term(), index }
    }

    fn is_continued_by(self, message: &Message) -> bool {
        self.index == message.index() && self.term == message.log_term() && message.log_term() == message.term()
    }
}

#[derive(Debug, Default)]
pub struct MsgAppEncoder {
    position: Position,
}

impl MsgAppEncoder {
    pub fn encode(&mut self, message: &Message, out: &mut BytesMut) {
        if is_link_heartbeat(message) {
            out.put_u8(LINK_HEARTBEAT);
        } else if self.position.is_continued_by(message) {
            out.put_u8(ENTRIES);
            out.put_u64(message.entries.len() as u64);
            for entry in &message.entries {
                put_entry(entry, out);
            }
            out.put_u64(message.commit());
            self.position.index = self.position.index.wrapping_add(message.entries.len() as u64);
        } else {
            out.put_u8(MESSAGE);
            super::encode_framed(message, out);
            self.position = Position::after(message);
        }
    }
}

fn put_entry(entry: &Entry, out: &mut BytesMut) {
    let len = entry.encoded_len();
    out.reserve(8 + len);
    out.put_u64(len as u64);
    entry.encode_raw(out);
}

#[derive(Debug)]
pub struct MsgAppDecoder {
    input: Input,
    local: MemberId,
    remote: MemberId,
    message_bytes_max: u64,
    position: Position,
    state: State,
}

#[derive(Debug)]
enum State {
    Start,
    Count,
    /// `left` entries of the message are still to come; `held` is what they make us hold so far.
    Entries {
        left: u64,
        held: u64,
        message: Box<Message>,
    },
    Message,
}

impl MsgAppDecoder {
    pub fn new(local: MemberId, remote: MemberId, message_bytes_max: u64) -> MsgAppDecoder {
        let (input, position, state) = (Input::default(), Position::default(), State::Start);
        MsgAppDecoder { input, local, remote, message_bytes_max, position, state }
    }

    pub fn push(&mut self, piece: Bytes) {
        self.input.push(piece);
    }

    pub fn next_message(&mut self) -> Result<Option<Message>, DecodeError> {
        loop {
            match &mut self.state {
                State::Start => match self.input.take_u8() {
                    None => return Ok(None),
                    Some(LINK_HEARTBEAT) => return Ok(Some(link_heartbeat())),
                    Some(ENTRIES) => self.state = State::Count,
                    Some(MESSAGE) => self.state = State::Message,
                    Some(other) => return Err(DecodeError::UnknownType(other)),
                },
                State::Count => {
                    let Some(left) = self.input.take_u64() else { return Ok(None) };
                    check(left.saturating_mul(size_of::<Entry>() as u64), self.message_bytes_max)?;
                    self.state = State::Entries { left, held: 0, message: Box::new(self.continued()) };
                }
                State::Entries { left: 0, message, .. } => {
                    let Some(commit) = self.input.take_u64() else { return Ok(None) };
                    let mut message = std::mem::take(&mut **message);
                    message.commit = Some(commit);
                    self.state = State::Start;
                    return Ok(Some(message));
                }
                State::Entries { left, held, message } => {
                    let Some(bytes) = take_framed(&mut self.input, held, self.message_bytes_max)? else {
                        return Ok(None);
                    };
                    *left -= 1;
                    *held += size_of::<Entry>() as u64;
                    self.position.index = self.position.index.wrapping_add(1);
                    message.entries.push(Entry::decode(bytes)?);
                }
                State::Message => {
                    let Some(bytes) = take_framed(&mut self.input, &mut 0, self.message_bytes_max)? else {
                        return Ok(None);
                    };
                    let message = decode_message(bytes)?;
                    self.position = Position::after(&message);
                    self.state = State::Start;
                    return Ok(Some(message));
                }
            }
        }
    }

    /// What form 1 leaves out.
    fn continued(&self) -> Message {
        Message {
            r#type: Some(MessageType::MsgApp as i32),
            from: Some(self.remote.0),
            to: Some(self.local.0),
            term: Some(self.position.term),
            log_term: Some(self.position.term),
            index: Some(self.position.index),
            ..Message::default()
        }
    }
}

/// The bytes behind a length, once all have arrived. `held` counts what the message holds and may not pass `max`.
fn take_framed(input: &mut Input, held: &mut u64, max: u64) -> Result<Option<Bytes>, DecodeError> {
    let Some(len) = input.peek_u64() else { return Ok(None) };
    let total = held.saturating_add(len);
    check(total, max)?;
    if ((input.len() - 8) as u64) < len {
        return Ok(None);
    }
    input.skip(8);
    *held = total;
    Ok(input.take(len as usize))
}

fn check(found: u64, max: u64) -> Result<(), DecodeError> {
    if found > max { Err(DecodeError::TooLarge { found, max }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(term: u64, index: u64, data: &'static [u8]) -> Entry {
        Entry { r#type: Some(0), term: Some(term), index: Some(index), data: Some(Bytes::from_static(data)) }
    }

    fn append(term: u64, log_term: u64, index: u64, entries: Vec<Entry>, commit: u64) -> Message {
        Message {
            r#type: Some(MessageType::MsgApp as i32),
            from: Some(1),
            to: Some(2),
            term: Some(term),
            log_term: Some(log_term),
            index: Some(index),
            entries,
            commit: Some(commit),
            ..Message::default()
        }
    }

    fn decoder() -> MsgAppDecoder {
        MsgAppDecoder::new(MemberId(2), MemberId(1), 1 << 20)
    }

    #[test]
    fn the_short_form_is_etcds() {
        let mut encoder = MsgAppEncoder::default();
        let mut out = BytesMut::new();
        encoder.encode(&append(1, 1, 4, vec![entry(1, 5, b"a")], 4), &mut out);
        assert_eq!(out[0], 2, "the first message is sent whole");
        out.clear();
        encoder.encode(&append(1, 1, 5, vec![entry(1, 6, b"xy")], 5), &mut out);
        let expected: &[u8] = &[
            1, 0, 0, 0, 0, 0, 0, 0, 1, // one entry
            0, 0, 0, 0, 0, 0, 0, 10, 8, 0, 16, 1, 24, 6, 34, 2, b'x', b'y', // of ten bytes
            0, 0, 0, 0, 0, 0, 0, 5, // commit
        ];
        assert_eq!(out, expected);
        out.clear();
        encoder.encode(&link_heartbeat(), &mut out);
        encoder.encode(&append(2, 1, 6, vec![], 6), &mut out);
        assert_eq!(out[..2], [0, 2], "a new term is sent whole");
    }

    #[test]
    fn refusals() {
        let mut d = decoder();
        d.push(Bytes::from_static(&[3]));
        assert!(matches!(d.next_message(), Err(DecodeError::UnknownType(3))));
        let mut d = decoder();
        d.push(Bytes::from_static(&[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]));
        assert!(matches!(d.next_message(), Err(DecodeError::TooLarge { .. })), "a count that cannot be held");
        let mut d = decoder();
        d.push(Bytes::from_static(&[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0]));
        assert!(matches!(d.next_message(), Err(DecodeError::TooLarge { found: 16777216, .. })));
        let mut d = decoder();
        d.push(Bytes::from_static(&[2, 0, 0, 0, 0, 1, 0, 0, 0]));
        assert!(matches!(d.next_message(), Err(DecodeError::TooLarge { .. })));
    }

    /// Messages as a leader sends them: mostly going on where the last ended, sometimes from elsewhere.
    fn messages() -> impl Strategy<Value = Vec<Message>> {
        let step = (any::<bool>(), 0_u64..3, 0_usize..4, 0_u64..9);
        prop::collection::vec(step, 1..20).prop_map(|steps| {
            let (mut term, mut index) = (1, 0);
            let mut out = Vec::new();
            for (go_on, jump, count, commit) in steps {
                let log_term = term;
                if !go_on {
                    term += jump;
                    index += jump;
                }
                let entries = (1..=count as u64).map(|i| entry(term, index + i, b"data")).collect();
                out.push(append(term, log_term, index, entries, commit));
                index += count as u64;
            }
            out
        })
    }

    proptest! {
        #[test]
        fn what_is_sent_arrives(sent in messages(), size in 1_usize..200) {
            let mut encoder = MsgAppEncoder::default();
            let mut bytes = BytesMut::new();
            for message in &sent {
                encoder.encode(message, &mut bytes);
            }
            let (mut decoder, mut found) = (decoder(), Vec::new());
            for piece in bytes.chunks(size) {
                decoder.push(Bytes::copy_from_slice(piece));
                while let Some(message) = decoder.next_message().unwrap() {
                    found.push(message);
                }
            }
            prop_assert_eq!(found, sent);
        }
    }
}
