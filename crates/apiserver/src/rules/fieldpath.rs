//! Paths of fields as definitions write them, `.spec.list['a.b']`, resolved in a schema.

use serde_json::Value;

use crate::field::child;

/// The path as error texts write it and the schema it leads to, or why it leads nowhere.
pub(crate) fn resolve<'a>(path: &str, schema: &'a Value, brackets: bool) -> Result<(String, &'a Value), String> {
    let (mut rest, mut at, mut found) = (path, String::new(), schema);
    while let Some(first) = rest.chars().next() {
        let name: String;
        match first {
            '.' => {
                let end = rest[1..].find(['.', '[', ']']).map_or(rest.len(), |index| index + 1);
                if end == 1 {
                    return Err("unexpected end of JSON path".to_owned());
                }
                name = rest[1..end].to_owned();
                rest = &rest[end..];
            }
            '[' if !brackets => return Err("array notation is not allowed".to_owned()),
            '[' => (name, rest) = quoted(&rest[1..])?,
            _ => {
                let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
                return Err(format!("expected [ or . but got: {}", &rest[..end.max(1)]));
            }
        }
        (at, found) = step(&at, found, &name)?;
    }
    Ok((at, found))
}

fn step<'a>(at: &str, schema: &'a Value, name: &str) -> Result<(String, &'a Value), String> {
    let unknown = || "does not refer to a valid field".to_owned();
    if let Some(properties) = schema["properties"].as_object() {
        return properties.get(name).map(|found| (child(at, name), found)).ok_or_else(unknown);
    }
    match &schema["additionalProperties"] {
        found @ Value::Object(_) => Ok((format!("{at}[{name}]"), found)),
        _ => Err(unknown()),
    }
}

/// A name in single quotes up to the bracket, and what follows.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let Some(body) = text.strip_prefix('\'') else {
        let end = text.find(['.', '[', ']']).unwrap_or(text.len());
        return Err(match end {
            0 => "unexpected end of JSON path".to_owned(),
            _ => format!("expected single quoted string but got {}", &text[..end]),
        });
    };
    let mut name = String::new();
    let mut chars = body.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '\'' => {
                let rest = &body[index + 1..];
                let after = rest.strip_prefix(']').ok_or("unexpected end of JSON path")?;
                return Ok((name, after));
            }
            '\\' => {
                let escape = chars.next().map(|(_, c)| c).unwrap_or('\\');
                name.push(match escape {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    '\'' | '\\' => escape,
                    other => return Err(format!("invalid string literal: invalid escape char \\{other}")),
                });
            }
            c => name.push(c),
        }
    }
    Err("unexpected end of JSON path".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    #[test_case(".spec.a" => "spec.a"; "dots")]
    #[test_case(".spec['a']" => "spec.a"; "brackets")]
    #[test_case(".spec.m['x.y'].z" => "spec.m[x.y].z"; "key of a map")]
    #[test_case(".spec.none" => "! does not refer to a valid field"; "unknown")]
    #[test_case("spec" => "! expected [ or . but got: spec"; "no dot")]
    #[test_case(".spec[a]" => "! expected single quoted string but got a"; "no quotes")]
    #[test_case(".spec['a" => "! unexpected end of JSON path"; "open end")]
    #[test_case(".spec." => "! unexpected end of JSON path"; "dot at the end")]
    fn resolves(path: &str) -> String {
        let schema = json!({"properties": {"spec": {"properties": {"a": {"type": "string"}, "m": {"additionalProperties": {"properties": {"z": {}}}}}}}});
        super::resolve(path, &schema, true).map_or_else(|why| format!("! {why}"), |(at, _)| at)
    }
}
