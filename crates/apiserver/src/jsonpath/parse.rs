//! From the text of a path to its steps. What Kubernetes' reader takes is taken, and read as there.

use serde_json::Value;

use super::{Filter, Slice, Step, To};

type Parsed<T> = Result<T, String>;

/// The steps of a path, up to where its action ends.
pub(super) fn steps(text: &str) -> Parsed<Vec<Step>> {
    let (mut steps, mut rest) = (Vec::new(), text);
    while let Some(c) = rest.chars().next().filter(|c| *c != '}') {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '[' if rest.starts_with("[?(") => filter(&rest[3..], &mut steps)?,
            '.' if after.starts_with('.') => recursive(&after[1..], &mut steps)?,
            ' ' | '@' | '$' => after,
            '[' => bracket(after, &mut steps)?,
            '"' | '\'' => quote(rest, c, &mut steps)?,
            '.' => field(after, &mut steps),
            '+' | '-' | '0'..='9' => number(rest, &mut steps)?,
            c if is_word(c) => word(rest, &mut steps),
            '\r' | '\n' => return Err("unclosed action".to_owned()),
            c => return Err(format!("unrecognized character in action: {c:?}")),
        };
    }
    Ok(steps)
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn ends_name(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

/// A backslash keeps what follows it: `.metadata.annotations.example\.com/x`.
fn field<'a>(text: &'a str, steps: &mut Vec<Step>) -> &'a str {
    let mut escaped = false;
    let end = text.find(|c| {
        let ends = !escaped && ends_name(c);
        escaped = !escaped && c == '\\';
        ends
    });
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    steps.push(if name == "*" { Step::All } else { Step::Field(name.replace('\\', "")) });
    rest
}

fn recursive<'a>(text: &'a str, steps: &mut Vec<Step>) -> Parsed<&'a str> {
    if steps.last() == Some(&Step::Recursive) {
        return Err("invalid multiple recursive descent".to_owned());
    }
    steps.push(Step::Recursive);
    Ok(if text.starts_with(is_word) { field(text, steps) } else { text })
}

fn word<'a>(text: &'a str, steps: &mut Vec<Step>) -> &'a str {
    let (word, rest) = text.split_at(text.find(ends_name).unwrap_or(text.len()));
    steps.push(match word {
        "true" | "false" => Step::Literal((word == "true").into()),
        _ => Step::Word,
    });
    rest
}

fn number<'a>(text: &'a str, steps: &mut Vec<Step>) -> Parsed<&'a str> {
    let signed = usize::from(text.starts_with(['+', '-']));
    let end = text[signed..].find(|c: char| c != '.' && !c.is_ascii_digit()).map_or(text.len(), |end| end + signed);
    let (digits, rest) = text.split_at(end);
    let whole = digits.parse::<i64>().map(Value::from).ok();
    let number = whole.or_else(|| digits.parse::<f64>().ok().map(Value::from));
    steps.push(Step::Literal(number.ok_or_else(|| format!("cannot parse number {digits}"))?));
    Ok(rest)
}

fn quote<'a>(text: &'a str, mark: char, steps: &mut Vec<Step>) -> Parsed<&'a str> {
    let (mut words, mut escaped) = (String::new(), false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => break,
            _ if escaped => words.push(unescape(c, mark)?),
            '\\' => {}
            c if c == mark => {
                steps.push(Step::Literal(words.into()));
                return Ok(&text[at + 1..]);
            }
            c => words.push(c),
        }
        escaped = !escaped && c == '\\';
    }
    Err("unterminated quoted string".to_owned())
}

fn unescape(c: char, mark: char) -> Parsed<char> {
    match c {
        'a' => Ok('\u{7}'),
        'b' => Ok('\u{8}'),
        'f' => Ok('\u{c}'),
        'n' => Ok('\n'),
        'r' => Ok('\r'),
        't' => Ok('\t'),
        'v' => Ok('\u{b}'),
        c if c == '\\' || c == mark => Ok(c),
        _ => Err("unquote string: invalid syntax".to_owned()),
    }
}

fn bracket<'a>(text: &'a str, steps: &mut Vec<Step>) -> Parsed<&'a str> {
    let (inner, rest) = text.split_once(']').filter(|(inner, _)| !inner.contains('\n')).ok_or("unterminated array")?;
    if inner.contains(',') {
        let parts = inner.split(',').map(|part| self::steps(&format!("[{}]", part.trim_matches(' '))));
        steps.push(Step::Union(parts.collect::<Parsed<_>>()?));
        return Ok(rest);
    }
    let key = inner.strip_prefix('\'').and_then(|key| key.strip_suffix('\'')).filter(|key| !key.contains('\''));
    match key {
        // The name is read as it would be after a dot.
        Some(key) => steps.extend(self::steps(&format!(".{key}"))?),
        None => steps.push(Step::Slice(slice(if inner == "*" { ":" } else { inner })?)),
    }
    Ok(rest)
}

fn slice(text: &str) -> Parsed<Slice> {
    let mut parts = text.split(':').map(|part| match part {
        "" => Ok(None),
        // A sign of plus is none here.
        part if part.starts_with('+') => Err(()),
        part => part.parse().map(Some).map_err(|_| ()),
    });
    let wrong = |()| format!("invalid array index {text}");
    let from = parts.next().unwrap_or(Ok(None)).map_err(wrong)?;
    let to = match parts.next() {
        None => To::Next,
        Some(to) => to.map_err(wrong)?.map_or(To::End, To::Before),
    };
    let step = parts.next().unwrap_or(Ok(None)).map_err(wrong)?;
    if parts.next().is_some() { Err(wrong(())) } else { Ok(Slice { from, to, step }) }
}

fn filter<'a>(text: &'a str, steps: &mut Vec<Step>) -> Parsed<&'a str> {
    let end = filter_end(text).ok_or("unterminated filter")?;
    let rest = text[end + 1..].strip_prefix(']').ok_or("unclosed array expect ]")?;
    let condition = &text[..end];
    let (left, right) = match operator(condition) {
        None => (condition, None),
        Some((left, operator, right)) => (left, Some((operator.to_owned(), self::steps(right)?))),
    };
    steps.push(Step::Filter(Filter { left: self::steps(left)?, right }));
    Ok(rest)
}

/// Where the condition ends: at a parenthesis, but for one in the quotes it has.
fn filter_end(text: &str) -> Option<usize> {
    let (mut mark, mut closed, mut before) = (None, false, '(');
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            '"' | '\'' if mark.is_none() => mark = Some(c),
            '"' | '\'' if before != '\\' && mark == Some(c) => closed = true,
            ')' if mark.is_some() == closed => return Some(at),
            _ => {}
        }
        before = c;
    }
    None
}

fn operator(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let from = text.find(is_operator).filter(|from| *from > 0)?;
    let length = text[from..].find(|c| !is_operator(c)).unwrap_or(text.len() - from - 1);
    (length > 0).then(|| (&text[..from], &text[from..from + length], &text[from + length..]))
}
