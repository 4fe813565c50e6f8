//! Words of an expression.

use super::ast::{Fault, Literal};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Literal(Literal),
    Ident(String),
    /// Operators and brackets.
    Sign(&'static str),
    End,
}

const SIGNS: [&str; 27] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")", "[", "]",
    "{", "}", "=", ";", "@",
];
/// Words that CEL keeps for itself.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// All words with the byte each begins at; the last is `End`.
pub(super) fn lex(source: &str) -> Result<Vec<(usize, Token)>, Fault> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else {
            // After a dot a reserved word is the name of a field, as any other.
            let field = matches!(tokens.last(), Some((_, Token::Sign("." | ".?"))));
            let (token, length) = word(rest, at, field)?;
            tokens.push((at, token));
            at += length;
        }
    }
    tokens.push((source.len(), Token::End));
    Ok(tokens)
}

fn word(rest: &str, at: usize, field: bool) -> Result<(Token, usize), Fault> {
    let first = rest.chars().next().unwrap_or_default();
    if let Some(found) = quoted(rest, at)? {
        return Ok(found);
    }
    if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
        return number(rest, at);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = &rest[..end];
        let token = match name {
            "true" => Token::Literal(Literal::Bool(true)),
            "false" => Token::Literal(Literal::Bool(false)),
            "null" => Token::Literal(Literal::Null),
            "in" => Token::Sign("in"),
            name if RESERVED.contains(&name) && !field => {
                return Err(Fault::new(at, format!("reserved identifier: {name}")));
            }
            name => Token::Ident(name.to_owned()),
        };
        return Ok((token, end));
    }
    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
    let unknown = || Fault::new(at, format!("Syntax error: token recognition error at: '{first}'"));
    sign.map(|sign| (Token::Sign(sign), sign.len())).ok_or_else(unknown)
}

fn number(rest: &str, at: usize) -> Result<(Token, usize), Fault> {
    let bytes = rest.as_bytes();
    let digits = |from: usize, hex: bool| {
        let fits = |b: &u8| if hex { b.is_ascii_hexdigit() } else { b.is_ascii_digit() };
        bytes[from..].iter().take_while(|b| fits(b)).count()
    };
    if rest.starts_with("0x") || rest.starts_with("0X") {
        let end = 2 + digits(2, true);
        return whole(u64::from_str_radix(&rest[2..end], 16).ok(), rest, end, at);
    }
    let mut end = digits(0, false);
    let mut fraction = false;
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        fraction = true;
        end += 1 + digits(end + 1, false);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let count = digits((end + 1 + sign).min(bytes.len()), false);
        if count > 0 {
            fraction = true;
            end += 1 + sign + count;
        }
    }
    if fraction {
        let invalid = |_| Fault::new(at, "invalid double literal");
        return Ok((Token::Literal(Literal::Double(rest[..end].parse().map_err(invalid)?)), end));
    }
    whole(rest[..end].parse().ok(), rest, end, at)
}

/// An integer, `u` at its end if unsigned. The parser puts a sign before it, so 2^63 is let through for `-9223372036854775808`.
fn whole(value: Option<u64>, rest: &str, end: usize, at: usize) -> Result<(Token, usize), Fault> {
    let unsigned = rest[end..].starts_with(['u', 'U']);
    match value {
        Some(value) if unsigned => Ok((Token::Literal(Literal::Uint(value)), end + 1)),
        Some(value) if value <= i64::MAX as u64 + 1 => Ok((Token::Literal(Literal::Int(value as i64)), end)),
        _ if unsigned => Err(Fault::new(at, "invalid uint literal")),
        _ => Err(Fault::new(at, "invalid int literal")),
    }
}

/// A string or bytes literal, if one stands here: prefixes `r` and `b`, one or three quotes of either kind.
fn quoted(rest: &str, at: usize) -> Result<Option<(Token, usize)>, Fault> {
    let prefix = rest.len() - rest.trim_start_matches(['r', 'R', 'b', 'B']).len();
    let (marks, body) = rest.split_at(prefix);
    let Some(quote) = body.chars().next().filter(|c| matches!(c, '"' | '\'') && prefix <= 2) else { return Ok(None) };
    let flag = |c: char| marks.chars().any(|mark| mark.eq_ignore_ascii_case(&c));
    let (raw, bytes) = (flag('r'), flag('b'));
    let triple = quote.to_string().repeat(3);
    let fence = if body.starts_with(&triple) { triple } else { quote.to_string() };
    let text = &body[fence.len()..];
    let unended = || Fault::new(at, format!("Syntax error: token recognition error at: '{}'", clip(rest)));
    let mut end = 0;
    while !text[end..].starts_with(&fence) {
        let c = text[end..].chars().next().ok_or_else(unended)?;
        if c == '\n' && fence.len() == 1 {
            return Err(unended());
        }
        end += c.len_utf8();
        if c == '\\' && !raw {
            end += text[end..].chars().next().ok_or_else(unended)?.len_utf8();
        }
    }
    let content = if raw { text.as_bytes()[..end].to_vec() } else { unescape(&text[..end], bytes, at)? };
    let literal = if bytes {
        Literal::Bytes(content.into())
    } else {
        Literal::String(String::from_utf8(content).map_err(|_| Fault::new(at, "invalid string literal"))?)
    };
    Ok(Some((Token::Literal(literal), prefix + end + 2 * fence.len())))
}

fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}

fn unescape(text: &str, bytes: bool, at: usize) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let invalid = || Fault::new(at, "unable to unescape string");
        let escape = chars.next().ok_or_else(invalid)?;
        let plain = match escape {
            'a' => Some(7),
            'b' => Some(8),
            'f' => Some(12),
            'n' => Some(10),
            'r' => Some(13),
            't' => Some(9),
            'v' => Some(11),
            '\\' | '\'' | '"' | '`' | '?' => Some(escape as u8),
            _ => None,
        };
        if let Some(byte) = plain {
            out.push(byte);
            continue;
        }
        let (mut digits, radix, count) = match escape {
            'x' | 'X' => (String::new(), 16, 2),
            'u' => (String::new(), 16, 4),
            'U' => (String::new(), 16, 8),
            '0'..='3' => (escape.to_string(), 8, 3),
            _ => return Err(invalid()),
        };
        while digits.len() < count {
            digits.push(chars.next().filter(|c| c.is_digit(radix)).ok_or_else(invalid)?);
        }
        let code = u32::from_str_radix(&digits, radix).map_err(|_| invalid())?;
        // In bytes a short escape is one byte, in a string it is a character.
        if bytes && !matches!(escape, 'u' | 'U') {
            out.push(u8::try_from(code).map_err(|_| invalid())?);
        } else {
            let c = char::from_u32(code).ok_or_else(invalid)?;
            out.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Ok(out)
}
