//! The part of Kubernetes' JSONPath that printer columns use: `.a.b`, `['x.y']`, `[0]`, `[*]`, `[?(@.k=="v")]`.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    Filter(String, Value),
}

#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

impl JsonPath {
    /// Reads a path such as `.spec.replicas`; the error says what is not understood.
    pub fn parse(text: &str) -> Result<JsonPath, String> {
        let mut rest = text.trim();
        rest = rest.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(rest);
        rest = rest.strip_prefix('$').unwrap_or(rest);
        if !rest.starts_with('.') && !rest.starts_with('[') {
            return Err("must be a simple json path starting with .".to_owned());
        }
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = match rest.strip_prefix('[') {
                Some(inner) => bracket(inner)?,
                None => field(rest.strip_prefix('.').unwrap_or(rest))?,
            };
            steps.extend(step);
            rest = after;
        }
        Ok(JsonPath { steps })
    }

    /// All values at the path; a step that leads nowhere leads to none.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        self.steps
            .iter()
            .fold(vec![value], |found, step| found.into_iter().flat_map(|value| step.follow(value)).collect())
    }
}

impl Step {
    fn follow<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Step::Field(name), Value::Object(map)) => map.get(name).into_iter().collect(),
            (Step::Index(index), Value::Array(list)) => {
                let at = if *index < 0 { list.len() as i64 + index } else { *index };
                usize::try_from(at).ok().and_then(|at| list.get(at)).into_iter().collect()
            }
            (Step::All, Value::Array(list)) => list.iter().collect(),
            (Step::All, Value::Object(map)) => map.values().collect(),
            (Step::Filter(name, wanted), Value::Array(list)) => {
                list.iter().filter(|item| item.get(name) == Some(wanted)).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn field(text: &str) -> Result<(Option<Step>, &str), String> {
    // A backslash keeps the dot that follows it: `.metadata.annotations.example\.com/x`.
    let (mut name, mut chars) = (String::new(), text.char_indices().peekable());
    let mut end = text.len();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            '.' | '[' => {
                end = at;
                break;
            }
            c => name.push(c),
        }
    }
    let step = match name.as_str() {
        "" => None,
        "*" => Some(Step::All),
        _ => Some(Step::Field(name)),
    };
    if step.is_none() && end < text.len() && text[end..].starts_with('.') {
        return Err("recursive descent (..) is not supported".to_owned());
    }
    Ok((step, &text[end..]))
}

fn bracket(text: &str) -> Result<(Option<Step>, &str), String> {
    let (inner, after) = text.split_once(']').ok_or("a ] is missing")?;
    let step = if inner == "*" {
        Step::All
    } else if let Some(name) = quoted(inner) {
        Step::Field(name.to_owned())
    } else if let Some(filter) = inner.strip_prefix("?(").and_then(|inner| inner.strip_suffix(')')) {
        parse_filter(filter)?
    } else {
        Step::Index(inner.trim().parse().map_err(|_| format!("[{inner}] is not understood"))?)
    };
    Ok((Some(step), after))
}

fn parse_filter(text: &str) -> Result<Step, String> {
    let (left, right) = text.split_once("==").ok_or_else(|| format!("the filter {text} is not understood"))?;
    let name = left.trim().strip_prefix("@.").ok_or_else(|| format!("the filter {text} is not understood"))?;
    let right = right.trim();
    let wanted = match quoted(right) {
        Some(text) => text.into(),
        None => serde_json::from_str(right).map_err(|_| format!("the filter value {right} is not understood"))?,
    };
    Ok(Step::Filter(name.to_owned(), wanted))
}

fn quoted(text: &str) -> Option<&str> {
    let text = text.trim();
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('\'').or_else(|| inner('"'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(".spec.n" => "[5]")]
    #[test_case("{.spec.n}" => "[5]"; "braces")]
    #[test_case(".spec.list[1]" => "[\"b\"]")]
    #[test_case(".spec.list[-1]" => "[\"b\"]")]
    #[test_case(".spec.list[*]" => "[\"a\",\"b\"]")]
    #[test_case(".spec.missing.deep" => "[]")]
    #[test_case(".status.conditions[?(@.type==\"Ready\")].status" => "[\"True\"]")]
    #[test_case(".metadata.annotations['a.b/c']" => "[1]")]
    #[test_case(".metadata.annotations.a\\.b/c" => "[1]")]
    fn finds(path: &str) -> String {
        let object = json!({"spec": {"n": 5, "list": ["a", "b"]}, "metadata": {"annotations": {"a.b/c": 1}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]}});
        json!(JsonPath::parse(path).unwrap().find(&object)).to_string()
    }

    #[test_case("spec.n")]
    #[test_case(".a[")]
    #[test_case(".a[x]")]
    #[test_case("..a")]
    fn refuses(path: &str) {
        assert!(JsonPath::parse(path).is_err());
    }
}
