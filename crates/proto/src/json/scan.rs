//! Cuts a stream of bytes into JSON values, with the error texts of Go's `encoding/json`.
//!
//! Clients see these texts in the gateway's answers. The scanner looks at each byte once and keeps its place between
//! calls, so a value may arrive in any number of pieces.

use super::Error;

/// Go's limit on nested objects and arrays.
const DEPTH_MAX: usize = 10_000;

/// Collects pieces of input and gives out whole values.
#[derive(Debug, Default)]
pub struct Values {
    buffer: Vec<u8>,
    scanned: usize,
    scanner: Scanner,
    ended: bool,
}

impl Values {
    /// Appends the next piece of input.
    pub fn push(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// Says that no further piece will come.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Bytes held for a value that is not complete.
    pub fn pending(&self) -> usize {
        self.buffer.len()
    }

    /// The next whole value, or `None`: more input is needed or, after [`Values::end`], there is no more.
    pub fn take_next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        while let Some(&byte) = self.buffer.get(self.scanned) {
            match self.scanner.step(byte)? {
                Step::Inside => self.scanned += 1,
                Step::EndsHere => return Ok(Some(self.cut(self.scanned + 1))),
                Step::EndedBefore => return Ok(Some(self.cut(self.scanned))),
            }
        }
        if !self.ended {
            return Ok(None);
        }
        if self.scanner.at_end_of_scalar() {
            return Ok(Some(self.cut(self.scanned)));
        }
        if self.buffer.iter().all(|&b| is_space(b)) { Ok(None) } else { Err(Error::UnexpectedEof) }
    }

    fn cut(&mut self, length: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(length);
        self.scanned = 0;
        self.scanner = Scanner::default();
        std::mem::replace(&mut self.buffer, rest)
    }
}

/// Checks that `input` is one JSON value and nothing else.
pub(super) fn check(input: &[u8]) -> Result<(), Error> {
    let mut scanner = Scanner::default();
    let mut ended = false;
    for &byte in input {
        if ended && !is_space(byte) {
            return Err(invalid(byte, "after top-level value"));
        }
        if !ended {
            match scanner.step(byte)? {
                Step::Inside => {}
                Step::EndsHere => ended = true,
                Step::EndedBefore if is_space(byte) => ended = true,
                Step::EndedBefore => return Err(invalid(byte, "after top-level value")),
            }
        }
    }
    if ended || scanner.at_end_of_scalar() { Ok(()) } else { Err(Error::UnexpectedEndOfInput) }
}

enum Step {
    Inside,
    EndsHere,
    EndedBefore,
}

#[derive(Debug, Default)]
struct Scanner {
    state: State,
    open: Vec<Open>,
}

#[derive(Clone, Copy, Debug)]
enum Open {
    /// In an object, before the colon.
    Key,
    /// In an object, behind the colon.
    Member,
    Element,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Value,
    ValueOrClose,
    Key,
    KeyOrClose,
    AfterValue,
    String,
    Escape,
    /// Digits still to come of a `\u` escape.
    Hex(u8),
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
    /// Bytes already seen of `true`, `false` or `null`.
    Word(&'static str, usize),
}

impl Scanner {
    fn step(&mut self, byte: u8) -> Result<Step, Error> {
        match self.state {
            State::ValueOrClose if byte == b']' => return self.after_value(byte),
            State::KeyOrClose if byte == b'}' => {
                self.replace_top(Open::Member);
                return self.after_value(byte);
            }
            State::Value | State::ValueOrClose | State::Key | State::KeyOrClose if is_space(byte) => {}
            State::Value | State::ValueOrClose => self.begin_value(byte)?,
            State::Key | State::KeyOrClose if byte == b'"' => self.state = State::String,
            State::Key | State::KeyOrClose => return Err(invalid(byte, "looking for beginning of object key string")),
            State::AfterValue => return self.after_value(byte),
            State::String => match byte {
                b'"' => self.state = State::AfterValue,
                b'\\' => self.state = State::Escape,
                0..=0x1f => return Err(invalid(byte, "in string literal")),
                _ => {}
            },
            State::Escape => match byte {
                b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => self.state = State::String,
                b'u' => self.state = State::Hex(4),
                _ => return Err(invalid(byte, "in string escape code")),
            },
            State::Hex(left) if byte.is_ascii_hexdigit() => {
                self.state = if left == 1 { State::String } else { State::Hex(left - 1) };
            }
            State::Hex(_) => return Err(invalid(byte, "in \\u hexadecimal character escape")),
            State::Word(word, seen) => self.word(word, seen, byte)?,
            _ => return self.number(byte),
        }
        Ok(Step::Inside)
    }

    fn begin_value(&mut self, byte: u8) -> Result<(), Error> {
        self.state = match byte {
            b'{' => {
                self.push(byte, Open::Key)?;
                State::KeyOrClose
            }
            b'[' => {
                self.push(byte, Open::Element)?;
                State::ValueOrClose
            }
            b'"' => State::String,
            b'-' => State::Minus,
            b'0' => State::Zero,
            b'1'..=b'9' => State::Integer,
            b't' => State::Word("true", 1),
            b'f' => State::Word("false", 1),
            b'n' => State::Word("null", 1),
            _ => return Err(invalid(byte, "looking for beginning of value")),
        };
        Ok(())
    }

    fn number(&mut self, byte: u8) -> Result<Step, Error> {
        let digit = byte.is_ascii_digit();
        self.state = match (self.state, byte) {
            (State::Minus, b'0') => State::Zero,
            (State::Minus | State::Integer, _) if digit => State::Integer,
            (State::Minus, _) => return Err(invalid(byte, "in numeric literal")),
            (State::Zero | State::Integer, b'.') => State::Point,
            (State::Zero | State::Integer | State::Fraction, b'e' | b'E') => State::Exponent,
            (State::Point | State::Fraction, _) if digit => State::Fraction,
            (State::Point, _) => return Err(invalid(byte, "after decimal point in numeric literal")),
            (State::Exponent, b'+' | b'-') => State::ExponentSign,
            (State::Exponent | State::ExponentSign | State::ExponentDigits, _) if digit => State::ExponentDigits,
            (State::Exponent | State::ExponentSign, _) => return Err(invalid(byte, "in exponent of numeric literal")),
            _ => return self.after_value(byte),
        };
        Ok(Step::Inside)
    }

    fn word(&mut self, word: &'static str, seen: usize, byte: u8) -> Result<(), Error> {
        let expected = word.as_bytes()[seen];
        if byte != expected {
            return Err(invalid(byte, &format!("in literal {word} (expecting {})", quoted(expected))));
        }
        self.state = if seen + 1 == word.len() { State::AfterValue } else { State::Word(word, seen + 1) };
        Ok(())
    }

    fn after_value(&mut self, byte: u8) -> Result<Step, Error> {
        let Some(open) = self.open.last() else { return Ok(Step::EndedBefore) };
        self.state = State::AfterValue;
        match (open, byte) {
            (_, b' ' | b'\t' | b'\r' | b'\n') => {}
            (Open::Key, b':') => {
                self.replace_top(Open::Member);
                self.state = State::Value;
            }
            (Open::Key, _) => return Err(invalid(byte, "after object key")),
            (Open::Member, b',') => {
                self.replace_top(Open::Key);
                self.state = State::Key;
            }
            (Open::Element, b',') => self.state = State::Value,
            (Open::Member, b'}') | (Open::Element, b']') => {
                self.open.pop();
                return Ok(if self.open.is_empty() { Step::EndsHere } else { Step::Inside });
            }
            (Open::Member, _) => return Err(invalid(byte, "after object key:value pair")),
            (Open::Element, _) => return Err(invalid(byte, "after array element")),
        }
        Ok(Step::Inside)
    }

    /// Whether the input may end here, which only values without brackets leave open.
    fn at_end_of_scalar(&self) -> bool {
        use State::{AfterValue, ExponentDigits, Fraction, Integer, Zero};
        self.open.is_empty() && matches!(self.state, AfterValue | Zero | Integer | Fraction | ExponentDigits)
    }

    fn push(&mut self, byte: u8, open: Open) -> Result<(), Error> {
        self.open.push(open);
        if self.open.len() > DEPTH_MAX { Err(invalid(byte, "exceeded max depth")) } else { Ok(()) }
    }

    fn replace_top(&mut self, open: Open) {
        if let Some(top) = self.open.last_mut() {
            *top = open;
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn invalid(byte: u8, context: &str) -> Error {
    Error::Syntax(format!("invalid character {} {context}", quoted(byte)))
}

/// A byte as Go quotes a character: read as Latin-1, escaped unless printable.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0..=0x1f | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}
