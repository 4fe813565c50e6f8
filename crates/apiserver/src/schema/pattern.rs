//! Regular expressions of schemas, which are Go's: letters and digits of `\w` and `\d` are those of ASCII, and a bracket within a class
//! is a character.

use regex::{Regex, RegexBuilder};
use regex_syntax::ast::{Error, ErrorKind, parse::Parser};

/// How often something can be repeated, as in Go.
const REPEAT_MAX: u32 = 1000;
/// What a pattern of a schema may grow to in memory.
const BYTES_MAX: usize = 10 << 20;

/// The pattern, or what is wrong with it in Go's words.
pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    compile_pattern(pattern, BYTES_MAX)
}

/// The same with a limit of what the pattern may grow to in memory.
pub(crate) fn compile_pattern(pattern: &str, bytes_max: usize) -> Result<Regex, String> {
    let refuse = |why: String| format!("error parsing regexp: {why}");
    let ours = translate(pattern).map_err(refuse)?;
    Parser::new().parse(&ours).map_err(|error| refuse(fault(&error, pattern)))?;
    RegexBuilder::new(&ours).size_limit(bytes_max).build().map_err(|error| match property(pattern) {
        Some(name) => refuse(format!("invalid character class range: `{name}`")),
        None => refuse(error.to_string().lines().last().unwrap_or_default().trim().to_owned()),
    })
}

/// The first class of Unicode that is named.
fn property(pattern: &str) -> Option<&str> {
    let from = &pattern[pattern.find("\\p").or_else(|| pattern.find("\\P"))?..];
    let length = if from[2..].starts_with('{') { from.find('}')? + 1 } else { 3 };
    from.get(..length)
}

fn fault(error: &Error, pattern: &str) -> String {
    let span = error.span();
    let text = error.pattern().get(span.start.offset..span.end.offset).unwrap_or_default();
    let rest = error.pattern().get(span.start.offset..).unwrap_or_default();
    let group = error.pattern()[..span.end.offset].rfind("(?").map_or("", |at| &error.pattern()[at..span.end.offset]);
    let (what, shown) = match error.kind() {
        ErrorKind::GroupUnclosed => ("missing closing )", pattern),
        ErrorKind::GroupUnopened => ("unexpected )", pattern),
        ErrorKind::ClassUnclosed => ("missing closing ]", rest),
        ErrorKind::RepetitionMissing => {
            let length = repetition(rest).ok().flatten().unwrap_or_default();
            ("missing argument to repetition operator", &rest[..length])
        }
        ErrorKind::EscapeUnexpectedEof => ("trailing backslash at end of expression", ""),
        ErrorKind::ClassRangeInvalid => ("invalid character class range", text),
        ErrorKind::RepetitionCountInvalid => ("invalid repeat count", text),
        ErrorKind::UnsupportedLookAround if text.starts_with("(?<") => {
            ("invalid named capture", rest.split_inclusive(')').next().unwrap_or_default())
        }
        ErrorKind::UnsupportedLookAround => ("invalid or unsupported Perl syntax", text),
        ErrorKind::FlagUnrecognized | ErrorKind::FlagUnexpectedEof => ("invalid or unsupported Perl syntax", group),
        _ => ("invalid escape sequence", text),
    };
    format!("{what}: `{}`", shown.replace("\\-", "-"))
}

/// The same for our engine.
fn translate(pattern: &str) -> Result<String, String> {
    let (mut out, mut rest, mut in_class) = (String::with_capacity(pattern.len()), pattern, false);
    // Where the last repetition begins, if nothing has come since.
    let mut repeated: Option<&str> = None;
    while let Some(c) = rest.chars().next() {
        let here = rest;
        rest = &rest[c.len_utf8()..];
        let repetition = if in_class { None } else { repetition(here)? };
        match (c, in_class) {
            _ if repetition.is_some() => {
                let length = repetition.unwrap_or_default();
                if let Some(begun) = repeated {
                    let both = &begun[..begun.len() - here.len() + length];
                    return Err(format!("invalid nested repetition operator: `{both}`"));
                }
                rest = &here[length..];
                let lazy = rest.starts_with('?');
                rest = if lazy { &rest[1..] } else { rest };
                out.push_str(&here[..here.len() - rest.len()]);
                repeated = Some(here);
                continue;
            }
            ('\\', _) => {
                let Some(next) = rest.chars().next() else {
                    out.push('\\');
                    break;
                };
                if next == 'Q' {
                    let (plain, after) = rest[1..].split_once("\\E").unwrap_or((&rest[1..], ""));
                    out.push_str(&regex_syntax::escape(plain));
                    rest = after;
                } else {
                    rest = escape(rest, in_class, &mut out)?;
                }
            }
            ('[', false) => {
                in_class = true;
                out.push('[');
                rest = open_class(rest, &mut out);
            }
            ('[', true) if rest.starts_with(':') => out.push('['),
            (']', true) if out.ends_with(':') && here.len() < pattern.len() => {
                out.push(']');
                in_class = is_named_class(&out);
            }
            (']', true) => {
                in_class = false;
                out.push(']');
            }
            // No repetition, so a character.
            ('{', false) => out.push_str("\\{"),
            // These mean something to our engine within a class.
            ('[' | '&' | '~', true) => {
                out.push('\\');
                out.push(c);
            }
            ('-', true) if out.ends_with('-') => out.push_str("\\-"),
            (c, _) => out.push(c),
        }
        repeated = None;
    }
    Ok(out)
}

/// What may follow an opening bracket: a caret, and a closing one that is a character.
fn open_class<'a>(mut rest: &'a str, out: &mut String) -> &'a str {
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    if let Some(after) = rest.strip_prefix(']') {
        out.push_str("\\]");
        rest = after;
    }
    rest
}

/// Whether what has just ended was a name such as `[:alpha:]`, which is within a class.
fn is_named_class(out: &str) -> bool {
    out.rfind("[:").is_some_and(|at| {
        let name = &out[at + 2..out.len() - 2];
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || c == '^')
    })
}

/// What follows a backslash, of which the rest is given back.
fn escape<'a>(text: &'a str, in_class: bool, out: &mut String) -> Result<&'a str, String> {
    let c = text.chars().next().unwrap_or_default();
    let (refuse, rest) = (|| Err(format!("invalid escape sequence: `\\{c}`")), &text[c.len_utf8()..]);
    let (set, not) = match c {
        'd' | 'D' => ("0-9", c == 'D'),
        'w' | 'W' => ("0-9A-Za-z_", c == 'W'),
        's' | 'S' => ("\\t\\n\\x0C\\r ", c == 'S'),
        'b' | 'B' if !in_class => {
            out.push_str(&format!("(?-u:\\{c})"));
            return Ok(rest);
        }
        '0'..='7' => return octal(text, out).map_or_else(refuse, Ok),
        'A' | 'z' | 'a' | 'f' | 'n' | 'p' | 'P' | 'r' | 't' | 'v' | 'x' => {
            let named = matches!(c, 'p' | 'P' | 'x') && rest.starts_with('{');
            let (name, rest) = rest.split_at(if named { rest.find('}').map_or(0, |end| end + 1) } else { 0 });
            out.push_str(&format!("\\{c}{name}"));
            return Ok(rest);
        }
        c if c.is_ascii_punctuation() => {
            out.push_str(&regex_syntax::escape(&c.to_string()));
            return Ok(rest);
        }
        _ => return refuse(),
    };
    let ends_range = in_class && out.ends_with('-') && !out.ends_with("[-") && !out.ends_with("^-");
    match (in_class, not) {
        _ if ends_range => return refuse(),
        (true, false) => out.push_str(set),
        (_, not) => out.push_str(&format!("[{}{set}]", if not { "^" } else { "" })),
    }
    Ok(rest)
}

/// One to three digits that begin with a zero, or at least two others: one alone would refer to a group.
fn octal<'a>(text: &'a str, out: &mut String) -> Option<&'a str> {
    let digits = text.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    let number = u32::from_str_radix(&text[..digits], 8).ok().filter(|_| digits > 1 || text.starts_with('0'))?;
    out.push_str(&format!("\\x{{{number:x}}}"));
    Some(&text[digits..])
}

/// The length of a repetition that stands here.
fn repetition(text: &str) -> Result<Option<usize>, String> {
    if text.starts_with(['*', '+', '?']) {
        return Ok(Some(1));
    }
    let Some((counts, _)) = text.strip_prefix('{').and_then(|rest| rest.split_once('}')) else { return Ok(None) };
    let (low, high) = counts.split_once(',').unwrap_or((counts, counts));
    let is_count = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_count(low) || !(high.is_empty() || is_count(high)) {
        return Ok(None);
    }
    let over = |text: &str| !text.is_empty() && text.parse::<u32>().is_ok_and(|count| count > REPEAT_MAX);
    if over(low) || over(high) {
        Err(format!("invalid repeat count: `{{{counts}}}`"))
    } else {
        Ok(Some(counts.len() + 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go's own code says, in `testdata/patterns.txt`: the pattern, and either an error or texts with `+` or `-`, all as JSON.
    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        let mut wrong = Vec::new();
        for line in include_str!("testdata/patterns.txt").lines() {
            let row: serde_json::Value = serde_json::from_str(line).expect("a JSON object");
            let said = match compile(row["pattern"].as_str().expect("a pattern")) {
                Err(why) => serde_json::json!(why),
                Ok(regex) => {
                    let texts = row["said"].as_object().into_iter().flatten();
                    texts.map(|(text, _)| (text.clone(), serde_json::json!(regex.is_match(text)))).collect()
                }
            };
            if said != row["said"] {
                wrong.push(format!("{line}\n  {said}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
