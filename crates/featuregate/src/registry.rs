//! The registry: a table of features that has been checked, with look-up by name.

use std::fmt;

use crate::{Feature, Level, Stage, Version};

/// The name that sets every alpha feature of a level, except those that the flag also sets by name.
pub const ALL_ALPHA: &str = "AllAlpha";
/// The name that sets every beta feature of a level, except those that the flag also sets by name.
pub const ALL_BETA: &str = "AllBeta";

/// All features of a product, server-level and cluster-level, sorted by name.
///
/// Invariant: the table has no fault that [`TableError`] lists. Both levels share one table, so
/// that a name is unique among both.
#[derive(Clone, Debug)]
pub struct Registry {
    features: Vec<Feature>,
}

/// All faults of a feature table, in the order of its rows. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TableErrors(pub Vec<TableError>);

impl fmt::Display for TableErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the feature table cannot be used: ")?;
        for (i, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

/// One fault of one row of a feature table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The name is empty, starts with a character other than an ASCII letter, or contains anything
    /// but ASCII letters, digits and underscores.
    #[error("feature {name:?}: a name is letters, digits and underscores, and starts with a letter")]
    BadName {
        /// The name as given.
        name: &'static str,
    },
    /// The name is [`ALL_ALPHA`] or [`ALL_BETA`].
    #[error("feature {name}: the name is reserved for the gate that sets all features of a stage")]
    Reserved {
        /// The reserved name.
        name: &'static str,
    },
    /// An earlier row has this name, at either level.
    #[error("feature {name}: registered twice; one row holds all its specs, and its level is one of the two")]
    Duplicate {
        /// Name of the feature that has two rows.
        name: &'static str,
    },
    /// The row has no specs, so the feature exists in no version.
    #[error("feature {name}: no specs; give it at least the version that brings it")]
    NoSpecs {
        /// Name of the feature.
        name: &'static str,
    },
    /// The row has a blank [`Feature::owner`] or [`Feature::reason`].
    #[error("feature {name}: no {missing}; every row says who answers for the feature and why it is there")]
    Undocumented {
        /// Name of the feature.
        name: &'static str,
        /// `owner` or `reason`: the field that is blank.
        missing: &'static str,
    },
    /// A spec's version is not greater than that of the spec before it.
    #[error(
        "feature {name}: the spec for {next} stands after the one for {previous}; list each version once, ascending"
    )]
    Order {
        /// Name of the feature.
        name: &'static str,
        /// The version of the spec before.
        previous: Version,
        /// The version of the spec that is out of order.
        next: Version,
    },
    /// A spec's stage is earlier than that of the spec before it.
    #[error(
        "feature {name}: goes from {} back to {} in {version}; stages only go forward", from.word(), to.word()
    )]
    StageRegress {
        /// Name of the feature.
        name: &'static str,
        /// The later stage, which the spec before has.
        from: Stage,
        /// The earlier stage, to which the feature would go back.
        to: Stage,
        /// The version of the spec that goes back.
        version: Version,
    },
    /// An alpha spec is on by default, or locked.
    #[error("feature {name}: alpha and {what} in {version}; an alpha feature is off by default and not locked")]
    AlphaNotFree {
        /// Name of the feature.
        name: &'static str,
        /// `on` or `locked`, for the message.
        what: &'static str,
        /// The version of the alpha spec.
        version: Version,
    },
    /// A GA spec is locked and off by default: the feature could never be turned on.
    #[error("feature {name}: GA but locked off in {version}; what nobody can turn on is Deprecated, not GA")]
    GaLockedOff {
        /// Name of the feature.
        name: &'static str,
        /// The version of the GA spec.
        version: Version,
    },
    /// A spec that follows a locked one is not locked, or has another default.
    #[error("feature {name}: {what} in {version} after being locked; code for the other value may be gone by then")]
    LockUndone {
        /// Name of the feature.
        name: &'static str,
        /// The change after the lock, for the message: `unlocked` or `its default changed`.
        what: &'static str,
        /// The version of the spec that breaks the lock.
        version: Version,
    },
}

impl Registry {
    /// Checks a table and sorts it by name. The error lists every fault of every row.
    pub fn new(table: &[Feature]) -> Result<Registry, TableErrors> {
        let mut errors = Vec::new();
        for (i, feature) in table.iter().enumerate() {
            if table[..i].iter().any(|other| other.name == feature.name) {
                errors.push(TableError::Duplicate { name: feature.name });
            }
            check_row(feature, &mut errors);
        }
        if !errors.is_empty() {
            return Err(TableErrors(errors));
        }
        let mut features = table.to_vec();
        features.sort_by_key(|feature| feature.name);
        Ok(Registry { features })
    }

    /// All features of both levels, sorted by name.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// The features of one level, sorted by name.
    pub fn level(&self, level: Level) -> impl Iterator<Item = &Feature> {
        self.features.iter().filter(move |feature| feature.level == level)
    }

    /// Returns the row of a feature of either level, whatever version it starts at. `None` if no
    /// row has this name.
    pub fn get(&self, name: &str) -> Option<&Feature> {
        let at = self.features.binary_search_by(|feature| feature.name.cmp(name)).ok()?;
        self.features.get(at)
    }

    /// Whether the feature exists at `version`. Servers use this to reject requests for unknown
    /// features.
    pub fn knows(&self, name: &str, version: Version) -> bool {
        self.get(name).is_some_and(|feature| feature.spec_at(version).is_some())
    }
}

fn check_row(feature: &Feature, errors: &mut Vec<TableError>) {
    let name = feature.name;
    if name == ALL_ALPHA || name == ALL_BETA {
        errors.push(TableError::Reserved { name });
    }
    // A name travels in flags (`,` and `=` split), in metrics and in release records (spaces split).
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(legal) {
        errors.push(TableError::BadName { name });
    }
    if feature.specs.is_empty() {
        errors.push(TableError::NoSpecs { name });
    }
    for (missing, text) in [("owner", feature.owner), ("reason", feature.reason)] {
        if text.trim().is_empty() {
            errors.push(TableError::Undocumented { name, missing });
        }
    }
    check_specs(feature, errors);
}

fn check_specs(feature: &Feature, errors: &mut Vec<TableError>) {
    let name = feature.name;
    for spec in feature.specs {
        let version = spec.version;
        match spec.stage {
            Stage::Alpha if spec.default => errors.push(TableError::AlphaNotFree { name, what: "on", version }),
            Stage::Alpha if spec.locked => errors.push(TableError::AlphaNotFree { name, what: "locked", version }),
            Stage::Ga if spec.locked && !spec.default => errors.push(TableError::GaLockedOff { name, version }),
            _ => {}
        }
    }
    for pair in feature.specs.windows(2) {
        let [old, new] = pair else { continue };
        let version = new.version;
        if old.version >= new.version {
            errors.push(TableError::Order { name, previous: old.version, next: new.version });
        }
        if old.stage > new.stage {
            errors.push(TableError::StageRegress { name, from: old.stage, to: new.stage, version });
        }
        if old.locked && !new.locked {
            errors.push(TableError::LockUndone { name, what: "unlocked", version });
        } else if old.locked && old.default != new.default {
            errors.push(TableError::LockUndone { name, what: "its default changed", version });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Spec, alpha, beta, deprecated, ga, v};

    fn row(name: &'static str, specs: &'static [Spec]) -> Feature {
        Feature { name, level: Level::Server, owner: "tests", writes: "", reason: "Shows a rule.", specs }
    }

    fn errors(table: &[Feature]) -> Vec<TableError> {
        Registry::new(table).expect_err("the table has a fault").0
    }

    #[test]
    fn a_whole_life_is_accepted() {
        const LIFE: &[Spec] = &[
            alpha(v(3, 6)),
            beta(v(3, 7)).off(),
            beta(v(3, 8)),
            ga(v(3, 9)),
            ga(v(3, 10)).locked(),
            deprecated(v(3, 11)).on().locked(),
        ];
        let registry = Registry::new(&[row("B", LIFE), row("A", LIFE)]).expect("no fault");
        assert_eq!(registry.features().iter().map(|f| f.name).collect::<Vec<_>>(), ["A", "B"]);
        assert!(registry.knows("A", v(3, 6)) && !registry.knows("A", v(3, 5)) && !registry.knows("C", v(3, 6)));
    }

    #[test]
    fn names_are_unique_legal_and_not_reserved() {
        const S: &[Spec] = &[alpha(v(3, 8))];
        let other_level = Feature { level: Level::Cluster, ..row("A", S) };
        assert_eq!(errors(&[row("A", S), other_level]), [TableError::Duplicate { name: "A" }]);
        assert_eq!(errors(&[row("AllBeta", S)]), [TableError::Reserved { name: "AllBeta" }]);
        for name in ["", "A B", "A=", "A,B", "8ball", "Ä"] {
            assert_eq!(errors(&[row(name, S)]), [TableError::BadName { name }]);
        }
    }

    #[test]
    fn rows_say_who_and_why() {
        let bare = Feature { owner: "", reason: " ", ..row("A", &[]) };
        let texts: Vec<String> = errors(&[bare]).iter().map(ToString::to_string).collect();
        assert!(texts[0].contains("no specs") && texts[1].contains("no owner") && texts[2].contains("no reason"));
    }

    #[test]
    fn specs_go_forward() {
        const NAME: &str = "A";
        const CASES: [(&[Spec], TableError); 8] = [
            (&[alpha(v(3, 8)), beta(v(3, 8))], TableError::Order { name: NAME, previous: v(3, 8), next: v(3, 8) }),
            (&[alpha(v(3, 9)), beta(v(3, 8))], TableError::Order { name: NAME, previous: v(3, 9), next: v(3, 8) }),
            (
                &[beta(v(3, 8)), alpha(v(3, 9))],
                TableError::StageRegress { name: NAME, from: Stage::Beta, to: Stage::Alpha, version: v(3, 9) },
            ),
            (&[alpha(v(3, 8)).on()], TableError::AlphaNotFree { name: NAME, what: "on", version: v(3, 8) }),
            (&[alpha(v(3, 8)).locked()], TableError::AlphaNotFree { name: NAME, what: "locked", version: v(3, 8) }),
            (&[ga(v(3, 8)).off().locked()], TableError::GaLockedOff { name: NAME, version: v(3, 8) }),
            (
                &[ga(v(3, 8)).locked(), deprecated(v(3, 9)).on()],
                TableError::LockUndone { name: NAME, what: "unlocked", version: v(3, 9) },
            ),
            (
                &[ga(v(3, 8)).locked(), deprecated(v(3, 9)).locked()],
                TableError::LockUndone { name: NAME, what: "its default changed", version: v(3, 9) },
            ),
        ];
        for (specs, want) in CASES {
            assert_eq!(errors(&[row(NAME, specs)]), [want]);
        }
    }
}
