//! Manifests as people and tools write them: YAML or JSON, several documents in one file.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not YAML: {0}")]
pub struct YamlError(pub String);

/// All objects of a file, those of lists one by one. A key twice in one mapping is an error, not a choice.
pub fn objects(text: &str) -> Result<Vec<Value>, YamlError> {
    let is_list = |object: &Value| object["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    let mut objects = Vec::new();
    for document in documents(text)? {
        match document["items"].as_array() {
            Some(items) if is_list(&document) => objects.extend(items.iter().cloned()),
            _ => objects.push(document),
        }
    }
    Ok(objects)
}

/// As they are, without those that say nothing.
pub fn documents(text: &str) -> Result<Vec<Value>, YamlError> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| YamlError(first_line(&error)))?;
    documents.retain(|document| !document.is_null());
    Ok(documents)
}

/// The rest of what the parser says draws the line in question; and some of it is for those who call the parser from code.
fn first_line(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    line.split(", set DuplicateKeyPolicy").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::objects;

    #[test]
    fn documents_and_lists_are_taken_apart() {
        let text = "kind: A\n---\nkind: List\nitems: [{kind: B}, {kind: C}]\n---\n";
        let kinds: Vec<String> = objects(text).unwrap().iter().map(|o| o["kind"].to_string()).collect();
        assert_eq!(kinds, ["\"A\"", "\"B\"", "\"C\""]);
    }

    #[test]
    fn a_key_twice_is_an_error_that_names_it() {
        let error = objects("kind: A\nspec:\n  featureSet: OKD\n  featureSet: ''\n").unwrap_err().to_string();
        assert_eq!(error, "it is not YAML: line 4 column 3: duplicate mapping key: featureSet");
    }
}
