//! Names of gates as names in code.

use std::collections::BTreeMap;

use super::GenerateError;
use crate::{file::GatesFile, gate::Gate};

/// Every gate with its name in code, in the order of gates.
pub(super) fn idents(file: &GatesFile) -> Result<Vec<(String, &Gate)>, GenerateError> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut all = Vec::new();
    for gate in file.gates.values() {
        let ident = ident(&gate.name);
        if let Some(other) = seen.insert(ident.clone(), &gate.name) {
            return Err(GenerateError::SameIdentifier(other.to_owned(), gate.name.clone(), ident));
        }
        all.push((ident, gate));
    }
    Ok(all)
}

/// Each word begins with a capital letter, which Go needs and Rust likes; a digit cannot come first.
pub fn ident(name: &str) -> String {
    let mut ident = String::new();
    for word in name.split(['.', '-']).filter(|word| !word.is_empty()) {
        let mut letters = word.chars();
        ident.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        ident.push_str(letters.as_str());
    }
    match ident.as_str() {
        "Self" => "SelfGate".to_owned(),
        // Rust's list of all gates, Go's, and Go's type of names.
        "ALL" => "ALLGate".to_owned(),
        "All" => "AllGate".to_owned(),
        "Name" => "NameGate".to_owned(),
        _ if ident.is_empty() || ident.starts_with(|c: char| c.is_ascii_digit()) => format!("Gate{ident}"),
        _ => ident,
    }
}

/// One line of a comment, whatever the text holds.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    #[test_case("FastPath" => "FastPath")]
    #[test_case("network.fast-path" => "NetworkFastPath")]
    #[test_case("4K" => "Gate4K")]
    #[test_case("self" => "SelfGate")]
    #[test_case("ALL" => "ALLGate")]
    #[test_case("-" => "Gate")]
    #[test_case("all" => "AllGate")]
    fn idents(name: &str) -> String {
        super::ident(name)
    }
}
