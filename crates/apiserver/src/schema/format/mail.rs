//! Addresses of mail: `a@b.c`, or with a name before it, `A <a@b.c>`.

/// What Go's `mail.ParseAddress` takes.
pub(super) fn is_address(text: &str) -> bool {
    let text = blank(text);
    if let Some(rest) = address(text) {
        return comments(rest).is_some_and(str::is_empty);
    }
    let Some(rest) = phrase(text) else { return false };
    // A group of one.
    if let Some(group) = rest.strip_prefix(':') {
        return group.split_once(';').is_some_and(|(one, rest)| is_address(one) && rest.is_empty());
    }
    let Some(rest) = rest.strip_prefix('<') else { return false };
    let Some(rest) = address(blank(rest)) else { return false };
    blank(rest).strip_prefix('>').and_then(comments).is_some_and(str::is_empty)
}

fn blank(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

/// What follows remarks in parentheses.
fn comments(text: &str) -> Option<&str> {
    let mut text = blank(text);
    while let Some(mut rest) = text.strip_prefix('(') {
        let mut depth = 1;
        while depth > 0 {
            let c = rest.chars().next()?;
            rest = &rest[c.len_utf8()..];
            match c {
                '\\' => rest = &rest[rest.chars().next()?.len_utf8()..],
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
        }
        text = blank(rest);
    }
    Some(text)
}

/// What follows an address.
fn address(text: &str) -> Option<&str> {
    let rest = if text.starts_with('"') { quoted(text)? } else { dotted(text)? };
    let rest = blank(blank(rest).strip_prefix('@')?);
    match rest.strip_prefix('[') {
        Some(literal) => {
            let (inner, rest) = literal.split_once(']')?;
            inner.bytes().all(|byte| byte.is_ascii_graphic()).then_some(rest)
        }
        None => dotted(rest),
    }
}

fn quoted(text: &str) -> Option<&str> {
    let mut chars = text.strip_prefix('"')?.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '"' => return Some(&text[index + 2..]),
            '\\' => drop(chars.next()?),
            c if c != ' ' && c != '\t' && c.is_ascii_control() => return None,
            _ => {}
        }
    }
    None
}

/// Words with single dots between them.
fn dotted(text: &str) -> Option<&str> {
    let end = text.find(|c| !is_word(c) && c != '.').unwrap_or(text.len());
    let (words, rest) = text.split_at(end);
    words.split('.').all(|word| !word.is_empty()).then_some(rest)
}

/// What follows the words of a name, of which there may be none.
fn phrase(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = comments(rest)?;
        rest = match rest.chars().next()? {
            '<' | ':' => return Some(rest),
            '"' => quoted(rest)?,
            c if is_word(c) || c == '.' => rest.trim_start_matches(|c| is_word(c) || c == '.'),
            _ => return None,
        };
    }
}

fn is_word(c: char) -> bool {
    !c.is_ascii() || c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c)
}
