//! JSON patches (RFC 6902), read as leniently as Kubernetes reads them: a replaced or copied field need not be there, indices may
//! count from the end, and what has no value is null.

use serde_json::{Map, Value};

use crate::decode::{DEPTH_MAX, depth};

const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// The patch does not fit the object. Kubernetes does not tell its clients why, either.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit;

pub(super) fn apply(object: &mut Value, operations: &[Value]) -> Result<(), Misfit> {
    let mut copied = 0;
    operations.iter().try_for_each(|operation| Operation { members: operation }.apply(object, &mut copied))
}

struct Operation<'a> {
    members: &'a Value,
}

impl Operation<'_> {
    fn apply(&self, object: &mut Value, copied: &mut usize) -> Result<(), Misfit> {
        let (path, value) = (self.text("path")?, self.members.get("value"));
        match self.text("op")? {
            "add" => add(object, path, value.cloned().unwrap_or_default()),
            "remove" => remove(object, path).map(drop),
            "replace" => replace(object, path, value),
            "test" => test(object, path, value.unwrap_or(&Value::Null)),
            "move" => {
                let value = shallow(remove(object, self.text("from")?)?)?;
                add(object, path, value)
            }
            "copy" => {
                let value = shallow(copy(object, self.text("from")?, copied)?)?;
                add(object, path, value)
            }
            _ => Err(Misfit),
        }
    }

    fn text(&self, name: &str) -> Result<&str, Misfit> {
        self.members.get(name).and_then(Value::as_str).ok_or(Misfit)
    }
}

/// What the last step of a path is looked up in.
enum Holder<'a> {
    Map(&'a mut Map<String, Value>),
    List(&'a mut Vec<Value>),
}

impl Holder<'_> {
    fn get(&self, key: &str) -> Result<Option<&Value>, Misfit> {
        match self {
            Holder::Map(map) => Ok(map.get(key)),
            Holder::List(list) => Ok(list.get(index(key, list.len())?)),
        }
    }
}

/// Where a path ends. What stands before its first slash does not count.
fn find<'a>(object: &'a mut Value, path: &str) -> Result<(Holder<'a>, String), Misfit> {
    let steps: Vec<String> = path.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    let (key, parents) = steps.split_last().ok_or(Misfit)?;
    if parents.len() > DEPTH_MAX {
        return Err(Misfit);
    }
    let holder = parents.iter().try_fold(object, |value, step| match value {
        Value::Object(map) => map.get_mut(step).ok_or(Misfit),
        Value::Array(list) => {
            let at = index(step, list.len())?;
            Ok(&mut list[at])
        }
        _ => Err(Misfit),
    });
    match holder? {
        Value::Object(map) => Ok((Holder::Map(map), key.clone())),
        Value::Array(list) => Ok((Holder::List(list), key.clone())),
        _ => Err(Misfit),
    }
}

/// A place among `places`; one below zero counts from behind the last.
fn index(text: &str, places: usize) -> Result<usize, Misfit> {
    let places = i64::try_from(places).map_err(|_| Misfit)?;
    let at: i64 = text.parse().map_err(|_| Misfit)?;
    let at = if at < 0 { at + places } else { at };
    usize::try_from(at).ok().filter(|_| at < places).ok_or(Misfit)
}

fn add(object: &mut Value, path: &str, value: Value) -> Result<(), Misfit> {
    match find(object, path)? {
        (Holder::Map(map), key) => drop(map.insert(key, value)),
        (Holder::List(list), key) if key == "-" => list.push(value),
        (Holder::List(list), key) => list.insert(index(&key, list.len() + 1)?, value),
    }
    Ok(())
}

fn remove(object: &mut Value, path: &str) -> Result<Value, Misfit> {
    match find(object, path)? {
        (Holder::Map(map), key) => map.remove(&key).ok_or(Misfit),
        (Holder::List(list), key) => Ok(list.remove(index(&key, list.len())?)),
    }
}

fn replace(object: &mut Value, path: &str, value: Option<&Value>) -> Result<(), Misfit> {
    if path.is_empty() {
        *object = value.filter(|value| value.is_object() || value.is_array()).ok_or(Misfit)?.clone();
        return Ok(());
    }
    let value = value.cloned().unwrap_or_default();
    match find(object, path)? {
        (Holder::Map(map), key) => drop(map.insert(key, value)),
        (Holder::List(list), key) => {
            let at = index(&key, list.len())?;
            list[at] = value;
        }
    }
    Ok(())
}

/// A test for null holds where there is nothing: controllers ask so for a first finalizer.
fn test(object: &mut Value, path: &str, value: &Value) -> Result<(), Misfit> {
    let same = match path {
        "" => object == value,
        _ => {
            let (holder, key) = find(object, path)?;
            holder.get(&key)?.unwrap_or(&Value::Null) == value
        }
    };
    if same { Ok(()) } else { Err(Misfit) }
}

/// Copies could grow without end.
fn copy(object: &mut Value, from: &str, copied: &mut usize) -> Result<Value, Misfit> {
    let (holder, key) = find(object, from)?;
    let value = holder.get(&key)?.cloned().unwrap_or_default();
    *copied += value.to_string().len();
    if *copied > COPIED_BYTES_MAX { Err(Misfit) } else { Ok(value) }
}

/// What is put into itself again and again would nest without end.
fn shallow(value: Value) -> Result<Value, Misfit> {
    if depth(&value) > DEPTH_MAX { Err(Misfit) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    fn patched(operations: Value) -> Result<Value, Misfit> {
        let mut object = json!({"a": 1, "l": [1, 2], "m": {"x": {"y": 1}}, "n": null, "s~/": 1});
        apply(&mut object, operations.as_array().unwrap())?;
        Ok(object)
    }

    /// Each of these is taken by kube-apiserver, whatever the RFC says.
    #[test_case(json!([{"op": "replace", "path": "/z", "value": 2}]), "/z" => json!(2); "replace of a missing field")]
    #[test_case(json!([{"op": "add", "path": "/z"}]), "/z" => json!(null); "no value")]
    #[test_case(json!([{"op": "add", "path": "/l/-1", "value": 9}]), "/l" => json!([1, 2, 9]); "add counts from behind the end")]
    #[test_case(json!([{"op": "add", "path": "/l/2", "value": 9}]), "/l" => json!([1, 2, 9]); "add at the end")]
    #[test_case(json!([{"op": "add", "path": "/l/-", "value": 9}]), "/l" => json!([1, 2, 9]); "append")]
    #[test_case(json!([{"op": "add", "path": "/l/+0", "value": 9}]), "/l" => json!([9, 1, 2]); "a sign")]
    #[test_case(json!([{"op": "replace", "path": "/l/-1", "value": 9}]), "/l" => json!([1, 9]); "replace counts from the end")]
    #[test_case(json!([{"op": "remove", "path": "/l/-2"}]), "/l" => json!([2]); "remove counts from the end")]
    #[test_case(json!([{"op": "copy", "from": "/z", "path": "/y"}]), "/y" => json!(null); "copy of a missing field")]
    #[test_case(json!([{"op": "move", "from": "/m/x", "path": "/m/y"}]), "/m" => json!({"y": {"y": 1}}); "moved")]
    #[test_case(json!([{"op": "test", "path": "/z", "value": null}]), "/a" => json!(1); "nothing is null")]
    #[test_case(json!([{"op": "test", "path": "/n", "value": null}]), "/a" => json!(1); "null is null")]
    #[test_case(json!([{"op": "test", "path": "/z"}]), "/a" => json!(1); "no value is null")]
    #[test_case(json!([{"op": "replace", "path": "anything/a", "value": 2}]), "/a" => json!(2); "what is before the slash")]
    #[test_case(json!([{"op": "replace", "path": "", "value": {"b": 1}}]), "" => json!({"b": 1}); "the whole")]
    #[test_case(json!([{"op": "remove", "path": "/s~0~1"}]), "/a" => json!(1); "escapes")]
    fn taken(operations: Value, at: &str) -> Value {
        patched(operations).unwrap().pointer(at).expect("None").clone()
    }

    #[test_case(json!({"op": "test", "path": "/a", "value": 2}); "a test that fails")]
    #[test_case(json!({"op": "test", "path": "/z", "value": 2}); "a test of nothing")]
    #[test_case(json!({"op": "test", "path": "/z/y", "value": null}); "a test in nothing")]
    #[test_case(json!({"op": "test", "path": "/l/2", "value": null}); "a test behind the end")]
    #[test_case(json!({"op": "test", "path": "/a"}); "a test without a value")]
    #[test_case(json!({"op": "remove", "path": "/z"}); "remove of a missing field")]
    #[test_case(json!({"op": "remove", "path": "/l/2"}); "remove behind the end")]
    #[test_case(json!({"op": "remove", "path": "/l/-3"}); "remove before the start")]
    #[test_case(json!({"op": "remove", "path": "/l/-"}); "remove of no item")]
    #[test_case(json!({"op": "remove", "path": ""}); "remove of all")]
    #[test_case(json!({"op": "add", "path": "/z/y", "value": 1}); "add to nothing")]
    #[test_case(json!({"op": "add", "path": "/n/y", "value": 1}); "add to null")]
    #[test_case(json!({"op": "add", "path": "/a/y", "value": 1}); "add to a number")]
    #[test_case(json!({"op": "add", "path": "/l/3", "value": 1}); "add behind the end")]
    #[test_case(json!({"op": "add", "path": "/l/x", "value": 1}); "add at no index")]
    #[test_case(json!({"op": "add", "path": "", "value": {}}); "add of all")]
    #[test_case(json!({"op": "add", "path": "a", "value": 1}); "no slash")]
    #[test_case(json!({"op": "add", "value": 1}); "no path")]
    #[test_case(json!({"op": "replace", "path": "/l/2", "value": 1}); "replace behind the end")]
    #[test_case(json!({"op": "replace", "path": "", "value": 1}); "replace of all by a number")]
    #[test_case(json!({"op": "move", "from": "/z", "path": "/y"}); "move from nothing")]
    #[test_case(json!({"op": "move", "from": "/m", "path": "/m/x/z"}); "move into itself")]
    #[test_case(json!({"op": "move", "path": "/y"}); "move without from")]
    #[test_case(json!({"op": "copy", "from": "/z/y", "path": "/y"}); "copy from nothing")]
    #[test_case(json!({"op": "copy", "from": "/l/7", "path": "/y"}); "copy from behind the end")]
    #[test_case(json!({"op": "merge", "path": "/a", "value": 1}); "no such operation")]
    #[test_case(json!({"path": "/a", "value": 1}); "no operation")]
    #[test_case(json!(null); "nothing at all")]
    fn not_taken(operation: Value) {
        assert_eq!(patched(json!([operation])), Err(Misfit));
    }

    #[test]
    fn copies_do_not_grow_without_end() {
        let mut operations = vec![json!({"op": "add", "path": "/b", "value": {"x": "x".repeat(1000)}})];
        operations.extend((0..20).flat_map(|i| {
            let to = format!("/b/c{i}");
            [json!({"op": "copy", "from": "/b", "path": "/d"}), json!({"op": "move", "from": "/d", "path": to})]
        }));
        assert_eq!(patched(Value::Array(operations)), Err(Misfit));
    }
}
