//! Which items of two lists are the same one: by their keys, never by position.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use crate::{
    schema::ListKeys,
    value::{key_text, same},
};

/// For every item of `items` the index of the same item in `others`.
///
/// Lists that were written before they got keys may hold several items with one key: the first of them is then the
/// first of the other list, and so on, so that a write that changes nothing changes nothing.
pub(crate) fn pair(keys: &ListKeys, items: &[Value], others: &[Value]) -> Vec<Option<usize>> {
    // Mostly both lists begin alike, and comparing in step costs no memory.
    let alike = items.iter().zip(others).take_while(|(a, b)| same_keys(keys, a, b)).count();
    let mut pairs: Vec<Option<usize>> = (0..alike).map(Some).collect();
    if alike == items.len() {
        return pairs;
    }
    let mut index: BTreeMap<String, VecDeque<usize>> = BTreeMap::new();
    for (i, other) in others.iter().enumerate().skip(alike) {
        if let Some(text) = keys_text(keys, other) {
            index.entry(text).or_default().push_back(i);
        }
    }
    let mate = |item: &Value| index.get_mut(&keys_text(keys, item)?)?.pop_front();
    pairs.extend(items[alike..].iter().map(mate));
    pairs
}

/// The items of a list by their keys; of several with one key the first.
pub(crate) struct Items<'a, 'v> {
    keys: &'a ListKeys,
    by_keys: BTreeMap<String, &'v Value>,
}

impl<'a, 'v> Items<'a, 'v> {
    pub(crate) fn of(keys: &'a ListKeys, items: &'v [Value]) -> Items<'a, 'v> {
        let mut by_keys = BTreeMap::new();
        for (text, item) in items.iter().filter_map(|item| Some((keys_text(keys, item)?, item))) {
            by_keys.entry(text).or_insert(item);
        }
        Items { keys, by_keys }
    }

    /// The item that has these keys.
    pub(crate) fn find(&self, keys: &Value) -> Option<&'v Value> {
        self.by_keys.get(&keys_text(self.keys, keys)?).copied()
    }
}

/// The indexes of `0..len` that no pair leads to.
pub(crate) fn unpaired(pairs: &[Option<usize>], len: usize) -> Vec<usize> {
    let mut free = vec![true; len];
    for index in pairs.iter().flatten() {
        free[*index] = false;
    }
    (0..len).filter(|index| free[*index]).collect()
}

fn same_keys(keys: &ListKeys, a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return false };
    keys.of_item(a).zip(keys.of_item(b)).all(|(a, b)| match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    })
}

/// None for what is no object, which has no keys.
fn keys_text(keys: &ListKeys, item: &Value) -> Option<String> {
    let texts = keys.of_item(item.as_object()?).map(|value| value.map_or_else(|| "-".to_owned(), key_text));
    Some(texts.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(json!([{"n": "a"}, {"n": "b"}]), json!([{"n": "a"}, {"n": "b"}]) => vec![Some(0), Some(1)]; "in step")]
    #[test_case(json!([{"n": "b"}, {"n": "a"}]), json!([{"n": "a"}, {"n": "b"}]) => vec![Some(1), Some(0)]; "reordered")]
    #[test_case(json!([{"n": "c"}, {"n": "b"}]), json!([{"n": "a"}, {"n": "b"}]) => vec![None, Some(1)]; "new item")]
    #[test_case(json!([{"n": "a", "p": "TCP"}]), json!([{"n": "b"}, {"n": "a"}]) => vec![Some(1)]; "a default is a key")]
    #[test_case(json!([{"n": "a", "p": "UDP"}]), json!([{"n": "a"}]) => vec![None]; "another key")]
    #[test_case(json!([{"n": 1.0}]), json!([{"n": 2}, {"n": 1}]) => vec![Some(1)]; "numbers by value")]
    #[test_case(json!([{"n": "x"}, {"n": "a"}, {"n": "a"}, {"n": "a"}]), json!([{"n": "a"}, {"n": "a"}])
        => vec![None, Some(0), Some(1), None]; "one key twice")]
    #[test_case(json!(["a", null, {}]), json!(["a", null, {}]) => vec![None, None, Some(2)]; "only objects have keys")]
    fn pairs(items: Value, others: Value) -> Vec<Option<usize>> {
        let keys = ListKeys(vec![("n".to_owned(), None), ("p".to_owned(), Some(json!("TCP")))]);
        pair(&keys, items.as_array().unwrap(), others.as_array().unwrap())
    }
}
