//! Feature sets: the five values of `spec.featureSet`, and what each promises.

use std::{fmt, str::FromStr};

/// What `spec.featureSet` may say. The order is that of tables and generated files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Set {
    Default,
    Okd,
    TechPreview,
    DevPreview,
    Custom,
}

/// The sets that a registry has lists for; Custom is made from Default.
pub const LISTED: [Set; 4] = [Set::Default, Set::Okd, Set::TechPreview, Set::DevPreview];

/// Each smaller set with one that must hold all of its gates.
pub const ORDER: [(Set, Set); 3] =
    [(Set::Default, Set::TechPreview), (Set::TechPreview, Set::DevPreview), (Set::Default, Set::Okd)];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown feature set {0:?}: use \"\" (Default), TechPreviewNoUpgrade, DevPreviewNoUpgrade, CustomNoUpgrade or OKD"
)]
pub struct UnknownSet(pub String);

impl Set {
    /// As `spec.featureSet` has it: Default is the empty text.
    pub fn wire(self) -> &'static str {
        if self == Set::Default { "" } else { self.name() }
    }

    /// As people and files have it.
    pub fn name(self) -> &'static str {
        match self {
            Set::Default => "Default",
            Set::Okd => "OKD",
            Set::TechPreview => "TechPreviewNoUpgrade",
            Set::DevPreview => "DevPreviewNoUpgrade",
            Set::Custom => "CustomNoUpgrade",
        }
    }

    /// A cluster that has once been in such a set stays in it.
    pub fn is_one_way(self) -> bool {
        matches!(self, Set::TechPreview | Set::DevPreview | Set::Custom)
    }

    /// Clusters with such a set are upgraded, so what is on in it must be proven.
    pub fn allows_upgrades(self) -> bool {
        !self.is_one_way()
    }

    /// The set itself and all listed sets that must hold its gates too.
    pub fn with_wider(self) -> Vec<Set> {
        LISTED.into_iter().filter(|set| self.within(*set)).collect()
    }

    /// True if every gate of this set must be in `other`.
    pub fn within(self, other: Set) -> bool {
        self == other || ORDER.iter().any(|(small, wide)| *small == self && wide.within(other))
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads both what the API has ("") and what people write ("Default").
impl FromStr for Set {
    type Err = UnknownSet;

    fn from_str(text: &str) -> Result<Set, UnknownSet> {
        match text {
            "" | "Default" => Ok(Set::Default),
            "OKD" => Ok(Set::Okd),
            "TechPreviewNoUpgrade" => Ok(Set::TechPreview),
            "DevPreviewNoUpgrade" => Ok(Set::DevPreview),
            "CustomNoUpgrade" => Ok(Set::Custom),
            _ => Err(UnknownSet(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wider_sets_follow_the_order() {
        use Set::*;
        assert_eq!(Default.with_wider(), [Default, Okd, TechPreview, DevPreview]);
        assert_eq!(Okd.with_wider(), [Okd]);
        assert_eq!(TechPreview.with_wider(), [TechPreview, DevPreview]);
        assert_eq!(DevPreview.with_wider(), [DevPreview]);
    }

    #[test]
    fn unknown_sets_are_named() {
        let error = "LatencySensitive".parse::<Set>().unwrap_err().to_string();
        assert!(error.starts_with("unknown feature set \"LatencySensitive\": use "), "{error}");
    }
}
