//! Go's quoted strings, both ways.

/// Quotes bytes: printable text stays, the rest becomes `\n`, `\x00` or `\u200b`.
pub fn quote(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        chunk.valid().chars().for_each(|c| push_char(&mut out, c));
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out.push('"');
    out
}

fn push_char(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        ' '..='~' => out.push(c),
        '\0'..'\u{80}' => out.push_str(&format!("\\x{:02x}", c as u32)),
        c if is_printable(c) => out.push(c),
        c if (c as u32) < 0x10000 => out.push_str(&format!("\\u{:04x}", c as u32)),
        c => out.push_str(&format!("\\U{:08x}", c as u32)),
    }
}

/// The standard library knows what is printable but tells only through its own escaping.
fn is_printable(c: char) -> bool {
    // Behind another character, marks that join it are not escaped either.
    !['a', c].iter().collect::<String>().escape_debug().skip(1).eq(c.escape_unicode())
}

/// Reads one quoted string off the front: its bytes, and what follows.
pub fn unquote_prefix(text: &str) -> Option<(Vec<u8>, &str)> {
    if let Some(rest) = text.strip_prefix('`') {
        let (raw, rest) = rest.split_once('`')?;
        return Some((raw.replace('\r', "").into_bytes(), rest));
    }
    let mut rest = text.strip_prefix('"')?;
    let mut out = Vec::new();
    loop {
        let c = rest.chars().next()?;
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => return Some((out, rest)),
            '\n' => return None,
            '\\' => rest = unescape(rest, &mut out)?,
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// What follows a backslash.
fn unescape<'a>(text: &'a str, out: &mut Vec<u8>) -> Option<&'a str> {
    let kind = text.chars().next()?;
    let rest = &text[kind.len_utf8()..];
    let simple = match kind {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        '"' => b'"',
        _ => return unescape_number(kind, text, out),
    };
    out.push(simple);
    Some(rest)
}

fn unescape_number<'a>(kind: char, text: &'a str, out: &mut Vec<u8>) -> Option<&'a str> {
    let (start, digits, radix) = match kind {
        'x' => (1, 2, 16),
        'u' => (1, 4, 16),
        'U' => (1, 8, 16),
        '0'..='7' => (0, 3, 8),
        _ => return None,
    };
    let number = text.get(start..start + digits)?;
    if !number.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let value = u32::from_str_radix(number, radix).ok()?;
    if matches!(kind, 'u' | 'U') {
        out.extend_from_slice(char::from_u32(value)?.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        out.push(value.try_into().ok()?);
    }
    Some(&text[start + digits..])
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(b"plain" => r#""plain""#)]
    #[test_case("中文 é\u{301}".as_bytes() => "\"中文 é\u{301}\"")]
    #[test_case(b"\x00\x7f\n\"\\\xff" => r#""\x00\x7f\n\"\\\xff""#)]
    #[test_case("\u{200b}\u{a0}\u{1F600}\u{10ffff}".as_bytes() => "\"\\u200b\\u00a0\u{1F600}\\U0010ffff\"")]
    fn quotes(bytes: &[u8]) -> String {
        quote(bytes)
    }

    #[test_case(r#""a b" rest"# => Some((b"a b".to_vec(), " rest")))]
    #[test_case("\"\\x00\\u00e9\\101\\n\"" => Some((b"\x00\xc3\xa9A\n".to_vec(), "")))]
    #[test_case("`raw\\n`x" => Some((b"raw\\n".to_vec(), "x")))]
    #[test_case(r#""open"# => None)]
    #[test_case(r#""\q""# => None)]
    #[test_case(r#""\x+1""# => None)]
    #[test_case(r#""\777""# => None)]
    #[test_case("bare" => None)]
    fn unquotes(text: &str) -> Option<(Vec<u8>, &str)> {
        unquote_prefix(text)
    }
}
