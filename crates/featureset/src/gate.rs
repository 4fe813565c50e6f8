//! A gate as its owner declares it: who to ask, what it is for, and in which sets of which profiles it is on.

use std::collections::{BTreeMap, BTreeSet};

use featuregate::Version;

use crate::set::Set;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    pub name: String,
    pub owner: String,
    pub contact: String,
    pub enhancement: String,
    pub description: String,
    /// The first minor release that knows the gate.
    pub since: Version,
    /// The minor release by which it should be gone; from then on it is reported.
    pub expires: Option<Version>,
    pub depends_on: BTreeSet<String>,
    /// Whether what the gate did can be undone by turning it off. Only informs people.
    pub reversible: bool,
    /// Where it is on, in profiles that have no entry in `profiles`.
    pub sets: BTreeSet<Set>,
    /// Where it is on in single profiles.
    pub profiles: BTreeMap<String, BTreeSet<Set>>,
}

impl Gate {
    pub fn sets_in(&self, profile: &str) -> &BTreeSet<Set> {
        self.profiles.get(profile).unwrap_or(&self.sets)
    }

    pub fn is_on(&self, profile: &str, set: Set) -> bool {
        self.sets_in(profile).contains(&set)
    }

    /// How far the gate has come in the profile where it is furthest.
    pub fn stage<'a>(&self, profiles: impl IntoIterator<Item = &'a String>) -> Stage {
        let furthest = |set| move |sets: &BTreeSet<Set>| sets.contains(&set);
        let sets: Vec<&BTreeSet<Set>> = profiles.into_iter().map(|profile| self.sets_in(profile)).collect();
        let any = |set| sets.iter().any(|sets| furthest(set)(sets));
        match () {
            () if any(Set::Default) => Stage::Default,
            () if any(Set::TechPreview) => Stage::TechPreview,
            () if any(Set::DevPreview) => Stage::DevPreview,
            () if any(Set::Okd) => Stage::TechPreview,
            () => Stage::Off,
        }
    }
}

/// Made from the sets, so that the two cannot contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Off,
    DevPreview,
    TechPreview,
    Default,
}

impl Stage {
    pub fn name(self) -> &'static str {
        match self {
            Stage::Off => "Off",
            Stage::DevPreview => "DevPreview",
            Stage::TechPreview => "TechPreview",
            Stage::Default => "Default",
        }
    }
}

/// What the API takes as the name of a gate.
pub const NAME_PATTERN: &str = r"^([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+\.?$";

/// Names of cluster features of a store begin with it where both are asked for in one place.
pub const STORE_PREFIX: &str = "store.";

/// [`NAME_PATTERN`], without a regular expression: words of letters, digits and dashes with dots between, one dot more
/// at the end.
pub fn is_name(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    text.split('.').all(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case("FastPath" => true)]
    #[test_case("network.FastPath-2" => true)]
    #[test_case("a.b." => true)]
    #[test_case("" => false)]
    #[test_case("." => false)]
    #[test_case("a..b" => false)]
    #[test_case("a.." => false)]
    #[test_case("a_b" => false)]
    #[test_case("é" => false)]
    fn names(text: &str) -> bool {
        is_name(text)
    }
}
