//! What a definition asks for and this server does not do: its author is told, so that nobody relies on it.

use serde_json::Value;

use super::versions;

/// One text for each thing, naming where it stands. What the old definition had already is not said again.
pub fn cautions(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(texts).unwrap_or_default();
    texts(definition).into_iter().filter(|text| !known.contains(text)).collect()
}

fn texts(definition: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    for (index, version) in versions(definition).iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        if version["subresources"]["scale"].is_object() {
            texts.push(format!("{at}.subresources.scale: not served by this server"));
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_done_is_said_once() {
        let definition = json!({"spec": {"versions": [{"subresources": {"scale": {}}}]}});
        assert_eq!(cautions(&definition, None), ["spec.versions[0].subresources.scale: not served by this server"]);
        assert!(cautions(&definition, Some(&definition)).is_empty());
    }
}
