//! Sets as `fieldsV1` has them: `{"f:spec":{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}}`.

use serde_json::{Map, Value, json};

use super::{
    element::{Bad, Element},
    set::{Branch, Set},
};

impl Set {
    /// Elements of kinds that are not known are left out, as a later version may have written them.
    pub(crate) fn parse(json: &Value) -> Result<Set, String> {
        parse_branch(json).map(|branch| branch.below)
    }

    pub(crate) fn to_json(&self) -> Value {
        Value::Object(self.to_map())
    }

    fn to_map(&self) -> Map<String, Value> {
        let member = |(element, branch): (&Element, &Branch)| {
            let mut below = branch.below.to_map();
            // A field with nothing below it is in the set by being there.
            if branch.owned && !below.is_empty() {
                below.insert(".".to_owned(), json!({}));
            }
            (element.print(), Value::Object(below))
        };
        self.branches.iter().map(member).collect()
    }
}

fn parse_branch(json: &Value) -> Result<Branch, String> {
    let map = json.as_object().ok_or_else(|| format!("a set of fields must be an object, not {json}"))?;
    let mut branch = Branch { owned: map.contains_key("."), below: Set::default() };
    for (text, json) in map.iter().filter(|(text, _)| *text != ".") {
        match Element::parse(text) {
            Ok(element) => branch.below.put(element, parse_branch(json)?),
            Err(Bad::Unknown) => {}
            Err(Bad::Malformed(why)) => return Err(why),
        }
    }
    branch.owned |= branch.below.is_empty();
    Ok(branch)
}
