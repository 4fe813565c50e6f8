//! JSON as `serde_json` prints it, and nothing else: no blanks, keys in order and once, the shortest escapes, numbers in its form.

use std::borrow::Cow;

/// A place in a text.
pub(super) struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The members of a map that were seen so far.
pub(super) struct Members<'a> {
    last: Cow<'a, [u8]>,
    pub count: usize,
    /// Where the last key begins.
    pub key_at: usize,
}

impl<'a> Text<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Text<'a> {
        Text { bytes, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The length of the text, if all of it was read.
    pub(super) fn ended(&self) -> Option<usize> {
        (self.at == self.bytes.len()).then_some(self.at)
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// What is still to be read.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at.min(self.bytes.len())..]
    }

    /// The text up to the end of a number, or of a string without such signs in it.
    pub(super) fn word_at(&self) -> &'a str {
        let rest = self.rest();
        let length = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(rest.len());
        std::str::from_utf8(&rest[..length]).unwrap_or_default()
    }

    pub(super) fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub(super) fn take(&mut self, byte: u8) -> Option<()> {
        self.skip(byte).then_some(())
    }

    pub(super) fn members(&mut self) -> Option<Members<'a>> {
        self.take(b'{')?;
        Some(Members { last: Cow::Borrowed(b""), count: 0, key_at: 0 })
    }

    /// The next key, up to its value; none within if the map ends.
    pub(super) fn key(&mut self, members: &mut Members<'a>) -> Option<Option<Cow<'a, [u8]>>> {
        if self.skip(b'}') {
            return Some(None);
        }
        if members.count > 0 {
            self.take(b',')?;
        }
        members.key_at = self.at;
        let key = self.string()?;
        self.take(b':')?;
        if members.count > 0 && key <= members.last {
            return None;
        }
        members.count += 1;
        members.last = key.clone();
        Some(Some(key))
    }

    /// A value that holds no others.
    pub(super) fn scalar(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn number(&mut self) -> Option<()> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(rest.len());
        let number = &rest[..length];
        if !is_short_integer(number) {
            let parsed: serde_json::Number = serde_json::from_slice(number).ok()?;
            (parsed.to_string().as_bytes() == number).then_some(())?;
        }
        self.at += length;
        Some(())
    }

    /// What stands between quotes, without escapes.
    fn string(&mut self) -> Option<Cow<'a, [u8]>> {
        self.take(b'"')?;
        let begin = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_length(&self.bytes[self.at..]);
            match self.peek()? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.at += escape(&self.bytes[self.at..])?.1;
                }
                _ => return None,
            }
        }
        let inner = &self.bytes[begin..self.at];
        self.at += 1;
        Some(if escaped { Cow::Owned(unescape(inner)) } else { Cow::Borrowed(inner) })
    }
}

/// Digits that fit in 64 bits whatever they are; longer ones, and fractions, are read and printed.
fn is_short_integer(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    let first = digits.first().is_some_and(|first| *first != b'0') || number == b"0";
    first && digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit)
}

/// How many bytes come before a quote, a backslash or a control character; eight are looked at at once.
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES * 128;
    // A byte is below `n` where taking `n` from it borrows. The lowest that is found is right, those above may be its borrow.
    let below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word;
    let (mut length, mut words) = (0, bytes.chunks_exact(8));
    for chunk in words.by_ref() {
        let word = chunk.try_into().map_or(0, u64::from_le_bytes);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let found = (below(word, 0x20) | quote | backslash) & HIGH;
        if found != 0 {
            return length + found.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let rest = words.remainder();
    let stops = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    length + rest.iter().position(stops).unwrap_or(rest.len())
}

/// The byte that an escape stands for and its length; none for one that is not printed so.
fn escape(bytes: &[u8]) -> Option<(u8, usize)> {
    let short = |byte| Some((byte, 2));
    match bytes.get(1)? {
        b'"' => short(b'"'),
        b'\\' => short(b'\\'),
        b'b' => short(8),
        b'f' => short(12),
        b'n' => short(b'\n'),
        b'r' => short(b'\r'),
        b't' => short(b'\t'),
        b'u' => {
            let (high, low) = (bytes.get(4)?, bytes.get(5)?);
            let low = b"0123456789abcdef".iter().position(|digit| digit == low)? as u8;
            let byte = (high.checked_sub(b'0').filter(|high| *high < 2)? << 4) | low;
            let long = bytes.get(2..4)? == b"00" && !matches!(byte, 8 | 9 | 10 | 12 | 13);
            long.then_some((byte, 6))
        }
        _ => None,
    }
}

fn unescape(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    while let Some(first) = bytes.first() {
        let (byte, length) = if *first == b'\\' { escape(bytes).unwrap_or((b'\\', 1)) } else { (*first, 1) };
        out.push(byte);
        bytes = &bytes[length..];
    }
    out
}
