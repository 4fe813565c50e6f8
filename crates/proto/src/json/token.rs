//! Tokens of a JSON value that [`super::scan`] found well-formed, with the positions and texts of Go's protojson.

use std::borrow::Cow;

use super::Error;

/// The next thing in the input and where it starts.
#[derive(Debug)]
pub(super) struct Token<'a> {
    pub at: usize,
    pub raw: &'a str,
    pub kind: TokenKind<'a>,
}

#[derive(Debug)]
pub(super) enum TokenKind<'a> {
    Open,
    ListOpen,
    Close,
    ListClose,
    String(Cow<'a, str>),
    Number,
    Bool(bool),
    Null,
}

pub(super) struct Tokens<'a> {
    input: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    /// `input` must be one well-formed value: commas and colons are skipped without a look.
    pub(super) fn new(input: &'a [u8]) -> Self {
        Tokens { input, at: 0 }
    }

    pub(super) fn read(&mut self) -> Result<Token<'a>, Error> {
        self.skip_separators();
        let at = self.at;
        let kind = match self.input.get(at) {
            Some(b'{') => self.bump(1, TokenKind::Open),
            Some(b'}') => self.bump(1, TokenKind::Close),
            Some(b'[') => self.bump(1, TokenKind::ListOpen),
            Some(b']') => self.bump(1, TokenKind::ListClose),
            Some(b't') => self.bump(4, TokenKind::Bool(true)),
            Some(b'f') => self.bump(5, TokenKind::Bool(false)),
            Some(b'n') => self.bump(4, TokenKind::Null),
            Some(b'"') => TokenKind::String(self.string()?),
            Some(_) => self.bump(number_length(&self.input[at..]), TokenKind::Number),
            None => return Err(Error::UnexpectedEof),
        };
        let raw = self.input.get(at..self.at).and_then(|raw| std::str::from_utf8(raw).ok()).unwrap_or_default();
        Ok(Token { at, raw, kind })
    }

    /// Whether the next token is this byte, `]` for instance.
    pub(super) fn next_is(&mut self, byte: u8) -> bool {
        self.skip_separators();
        self.input.get(self.at) == Some(&byte)
    }

    /// Reads over one value of any shape.
    pub(super) fn skip_value(&mut self) -> Result<(), Error> {
        let mut depth = 0usize;
        loop {
            match self.read()?.kind {
                TokenKind::Open | TokenKind::ListOpen => depth += 1,
                TokenKind::Close | TokenKind::ListClose => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    pub(super) fn unexpected(&self, token: &Token) -> Error {
        self.token_error(token.at, format!("unexpected token {}", token.raw))
    }

    /// An error about a value at byte `at`.
    pub(super) fn value_error(&self, at: usize, what: String) -> Error {
        let (line, column) = self.position(at);
        Error::Value { line, column, what }
    }

    fn token_error(&self, at: usize, what: String) -> Error {
        let (line, column) = self.position(at);
        Error::Token { line, column, what }
    }

    fn position(&self, at: usize) -> (usize, usize) {
        let before = &self.input[..at.min(self.input.len())];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |newline| newline + 1);
        (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
    }

    fn bump(&mut self, length: usize, kind: TokenKind<'a>) -> TokenKind<'a> {
        self.at += length.max(1);
        kind
    }

    fn skip_separators(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n' | b',' | b':') = self.input.get(self.at) {
            self.at += 1;
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Error> {
        let start = self.at;
        let mut end = start + 1;
        while let Some(&byte) = self.input.get(end)
            && byte != b'"'
        {
            end += if byte == b'\\' { 2 } else { 1 };
        }
        let body = self.input.get(start + 1..end).ok_or(Error::UnexpectedEof)?;
        let body =
            std::str::from_utf8(body).map_err(|_| self.token_error(start, "invalid UTF-8 in string".to_owned()))?;
        self.at = end + 1;
        if !body.contains('\\') {
            return Ok(Cow::Borrowed(body));
        }
        // Go looks at the six bytes behind a lone half of a character, even where the string has ended.
        unescape(body).map(Cow::Owned).map_err(|at| match self.input.get(start + 1 + at..start + 7 + at) {
            Some(code) => self.token_error(start, format!("invalid escape code {} in string", go_quoted(code))),
            None => Error::UnexpectedEofInString,
        })
    }
}

/// The text with its escapes replaced, or where the second half of a character should stand.
fn unescape(body: &str) -> Result<String, usize> {
    let mut out = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(escape) = rest.find('\\') {
        out.push_str(&rest[..escape]);
        let code = &rest[escape..];
        let at = body.len() - code.len();
        let (character, length) = match code.as_bytes().get(1) {
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{c}', 2),
            Some(b'n') => ('\n', 2),
            Some(b'r') => ('\r', 2),
            Some(b't') => ('\t', 2),
            Some(b'u') => unicode_escape(code).ok_or(at + 6)?,
            Some(&other) => (char::from(other), 2),
            None => return Err(at),
        };
        out.push(character);
        rest = code.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    Ok(out)
}

/// The character of `\uXXXX`, or of two such escapes that form a surrogate pair, and its length in the input.
fn unicode_escape(code: &str) -> Option<(char, usize)> {
    let unit = |from: usize| u16::from_str_radix(code.get(from..from + 6)?.strip_prefix("\\u")?, 16).ok();
    let first = unit(0)?;
    if let Some(character) = char::from_u32(u32::from(first)) {
        return Some((character, 6));
    }
    let pair = char::decode_utf16([first, unit(6)?]).next()?.ok()?;
    Some((pair, 12))
}

fn go_quoted(code: &[u8]) -> String {
    format!("\"{}\"", String::from_utf8_lossy(code).replace('\\', "\\\\").replace('"', "\\\""))
}

/// Length of the number that `input` starts with, 0 if it starts with none.
pub(super) fn number_length(input: &[u8]) -> usize {
    let digits = |from: usize| input.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
    let sign = usize::from(input.first() == Some(&b'-'));
    let mut length = sign
        + match input.get(sign) {
            Some(b'0') => 1,
            Some(b'1'..=b'9') => digits(sign),
            _ => return 0,
        };
    if input.get(length) == Some(&b'.') && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
    }
    if let Some(b'e' | b'E') = input.get(length) {
        let sign = usize::from(matches!(input.get(length + 1), Some(b'+' | b'-')));
        match digits(length + 1 + sign) {
            0 => {}
            count => length += 1 + sign + count,
        }
    }
    let glued = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'+' | b'.' | b'_');
    if input.get(length).is_some_and(glued) { 0 } else { length }
}

/// A JSON number as an integer: `12`, `1.20e1` and `120e-1` are all twelve, `1.5` is none.
pub(super) fn integer(number: &str) -> Option<i128> {
    let (negative, number) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = if whole == "0" { "" } else { whole };
    let fraction = fraction.trim_end_matches('0');
    if whole.is_empty() && fraction.is_empty() {
        return Some(0);
    }
    let exponent: i32 = exponent.parse().ok()?;
    let digits = if exponent >= 0 {
        let zeros = usize::try_from(exponent).ok()?.checked_sub(fraction.len())?;
        // A 64-bit number has at most 20 digits.
        if whole.len() + fraction.len() + zeros > 20 {
            return None;
        }
        format!("{whole}{fraction}{}", "0".repeat(zeros))
    } else {
        let cut = whole.len().checked_sub(exponent.unsigned_abs() as usize)?;
        if !fraction.is_empty() || whole[cut..].bytes().any(|b| b != b'0') {
            return None;
        }
        whole[..cut].to_owned()
    };
    let value: i128 = if digits.len() > 20 { return None } else { digits.parse().ok()? };
    Some(if negative { -value } else { value })
}
