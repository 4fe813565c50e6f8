//! Label selectors as text: `a=b,c in (d,e),!f,g>5`, with the errors of Kubernetes' parser.

use super::Requirement;
use crate::name;

type Result<T> = std::result::Result<T, String>;

const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>> {
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            "" => return Ok(requirements),
            token if token != "!" && is_special(token) => {
                return Err(format!("found '{token}', expected: !, identifier, or 'end of string'"));
            }
            _ => {}
        }
        requirements.push(parser.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?);
        match (parser.next(), parser.peek()) {
            ("", _) => return Ok(requirements),
            (",", next) if next.is_empty() || (next != "!" && is_special(next)) => {
                return Err(format!("found '{next}', expected: identifier after ','"));
            }
            (",", _) => {}
            (other, _) => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
        }
    }
}

/// Names and values, and what stands between them.
fn tokens(text: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        let length = match ["==", "!="].iter().any(|pair| rest.starts_with(pair)) {
            true => 2,
            false if rest.starts_with(SPECIAL) => 1,
            false => rest.find(|c: char| SPECIAL.contains(&c) || c.is_whitespace()).unwrap_or(rest.len()),
        };
        let (token, more) = rest.split_at(length);
        tokens.push(token);
        rest = more.trim_start();
    }
    tokens
}

const SPECIAL: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];

fn is_special(token: &str) -> bool {
    token.starts_with(SPECIAL)
}

struct Parser<'a> {
    tokens: Vec<&'a str>,
    at: usize,
}

impl<'a> Parser<'a> {
    /// Nothing stands for the end.
    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or_default()
    }

    fn next(&mut self) -> &'a str {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn identifier(&mut self) -> Result<&'a str> {
        match self.next() {
            token if token.is_empty() || is_special(token) => Err(format!("found '{token}', expected: identifier")),
            token => Ok(token),
        }
    }

    fn requirement(&mut self) -> Result<Requirement> {
        let absent = self.peek() == "!";
        self.at += usize::from(absent);
        let key = self.identifier()?.to_owned();
        name::check_qualified(&key).map_err(|why| format!("<nil>: Invalid value: {key:?}: {why}"))?;
        match (absent, self.peek()) {
            (true, _) => return Ok(Requirement::Absent(key)),
            (false, "" | ",") => return Ok(Requirement::Exists(key)),
            _ => {}
        }
        match self.next() {
            "=" | "==" => Ok(Requirement::In(key.clone(), self.value(&key)?)),
            "!=" => Ok(Requirement::NotIn(key.clone(), self.value(&key)?)),
            "in" => Ok(Requirement::In(key.clone(), self.values(&key)?)),
            "notin" => Ok(Requirement::NotIn(key.clone(), self.values(&key)?)),
            ">" => Ok(Requirement::Above(key.clone(), self.number(&key)?)),
            "<" => Ok(Requirement::Below(key.clone(), self.number(&key)?)),
            other => Err(format!("found '{other}', expected: {OPERATORS}")),
        }
    }

    fn value(&mut self, key: &str) -> Result<Vec<String>> {
        let value = if matches!(self.peek(), "" | ",") { "" } else { self.identifier()? };
        checked(key, vec![value.to_owned()])
    }

    fn number(&mut self, key: &str) -> Result<i64> {
        let value = self.value(key)?.concat();
        let why =
            || format!("values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer");
        value.parse().map_err(|_| why())
    }

    fn values(&mut self, key: &str) -> Result<Vec<String>> {
        match self.next() {
            "(" => {}
            other => return Err(format!("found '{other}' expected: '('")),
        }
        let mut values = Vec::new();
        loop {
            // A value may be empty, before a comma and before the end.
            let empty = matches!(self.peek(), "," | ")");
            values.push(if empty { String::new() } else { self.listed()?.to_owned() });
            match self.next() {
                "," => {}
                ")" => return checked(key, values),
                other => return Err(format!("found '{other}', expected: ',' or ')'")),
            }
        }
    }

    fn listed(&mut self) -> Result<&'a str> {
        self.identifier().map_err(|why| why.replace("expected: identifier", "expected: ',', ')' or identifier"))
    }
}

fn checked(key: &str, values: Vec<String>) -> Result<Vec<String>> {
    for (index, value) in values.iter().enumerate() {
        name::check_label_value(value)
            .map_err(|why| format!("values[{index}][{key}]: Invalid value: {value:?}: {why}"))?;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    /// As kube-apiserver 1.37 says them.
    #[test_case("a in (b" => "unable to parse requirement: found '', expected: ',' or ')'")]
    #[test_case("a===b" => "unable to parse requirement: found '=', expected: identifier")]
    #[test_case("," => "found ',', expected: !, identifier, or 'end of string'")]
    #[test_case("a=b c" => "found 'c', expected: ',' or 'end of string'")]
    #[test_case("!" => "unable to parse requirement: found '', expected: identifier")]
    #[test_case("a>x" => "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer")]
    #[test_case("a," => "found '', expected: identifier after ','")]
    #[test_case("a b" => "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt")]
    #[test_case("a in b" => "unable to parse requirement: found 'b' expected: '('")]
    fn refused(text: &str) -> String {
        parse(text).unwrap_err()
    }

    #[test]
    fn all_forms() {
        let of = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        let expected = [
            Requirement::In("a".into(), of(&["b"])),
            Requirement::NotIn("c".into(), of(&["d"])),
            Requirement::In("e".into(), of(&["f", "g", ""])),
            Requirement::NotIn("h".into(), of(&[""])),
            Requirement::Absent("i".into()),
            Requirement::Exists("in".into()),
            Requirement::Above("j".into(), 5),
            Requirement::In("l".into(), of(&[""])),
        ];
        // A label has no sign before a number, so none is below -3.
        assert!(parse("k< -3").is_err());
        assert_eq!(parse(" a = b,c!=d, e in (f, g,),h notin (),!i,in,j>5,l=").unwrap(), expected);
        assert_eq!(parse("").unwrap(), []);
    }
}
