//! The order of lists that are merged: that of the patch, and of what the server has, as far as both can be kept.

use serde_json::Value;

/// Items that the patch speaks of come as it names them, the others stay in their order, and before those that followed them.
pub(super) fn ordered(items: Vec<Value>, wanted: &[Value], server: &[Value], key: Option<&str>) -> Vec<Value> {
    let same = |a: &Value, b: &Value| key.map_or_else(|| a == b, |key| a.get(key) == b.get(key));
    let at = |list: &[Value], item: &Value| list.iter().position(|other| same(other, item));
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        items.into_iter().partition(|item| at(wanted, item).is_some());
    named.sort_by_key(|item| at(wanted, item));
    others.sort_by_key(|item| at(server, item));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut all = Vec::new();
    while let (Some(name), Some(other)) = (named.peek(), others.peek()) {
        let before = at(server, other).zip(at(server, name)).is_some_and(|(other, name)| other < name);
        all.extend(if before { others.next() } else { named.next() });
    }
    all.extend(named.chain(others));
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(&["a", "b"], &["b"], &["a", "b"] => vec!["a", "b"]; "as it was")]
    #[test_case(&["a", "b"], &["b"], &["a"] => vec!["b", "a"]; "what is new comes first")]
    #[test_case(&["a", "b", "c"], &["c", "a"], &["a", "b", "c"] => vec!["b", "c", "a"]; "the patch goes before")]
    fn lists(items: &[&str], wanted: &[&str], server: &[&str]) -> Vec<String> {
        let values = |list: &[&str]| list.iter().map(|item| json!(item)).collect::<Vec<_>>();
        let all = ordered(values(items), &values(wanted), &values(server), None);
        all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }
}
