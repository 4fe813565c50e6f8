//! What a feature is: its row in a table, and its spec (stage, default, lock) from a version on.

use std::fmt;

use crate::Version;

/// The maturity of a feature. The order of the variants is the order in which a feature passes
/// through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Off by default; may be removed in any minor release.
    Alpha,
    /// Usually on by default, and still open to change.
    Beta,
    /// Generally available: a supported part of the product. An operator who sets it gets a
    /// warning.
    Ga,
    /// About to be removed; in its last minor release the feature is also locked.
    Deprecated,
}

impl Stage {
    /// The `stage` label of metrics and help texts, as etcd and Kubernetes spell it. Empty for
    /// [`Stage::Ga`].
    pub const fn label(self) -> &'static str {
        match self {
            Stage::Alpha => "ALPHA",
            Stage::Beta => "BETA",
            Stage::Ga => "",
            Stage::Deprecated => "DEPRECATED",
        }
    }

    /// The lower-case word for the stage in release records and tables.
    pub const fn word(self) -> &'static str {
        match self {
            Stage::Alpha => "alpha",
            Stage::Beta => "beta",
            Stage::Ga => "ga",
            Stage::Deprecated => "deprecated",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Stage> {
        [Stage::Alpha, Stage::Beta, Stage::Ga, Stage::Deprecated].into_iter().find(|stage| stage.word() == word)
    }
}

/// The scope of a feature's value: each server or the cluster as a whole. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Each server decides for itself, from its own flag.
    Server,
    /// The cluster has one value; a server's flag is what that server proposes.
    Cluster,
}

impl Level {
    /// The command-line flag that sets features of this level.
    pub const fn flag(self) -> &'static str {
        match self {
            Level::Server => "--feature-gates",
            Level::Cluster => "--cluster-feature-gates",
        }
    }

    /// The word for the level in metrics (label `scope`), release records and tables.
    pub const fn word(self) -> &'static str {
        match self {
            Level::Server => "server",
            Level::Cluster => "cluster",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Level> {
        [Level::Server, Level::Cluster].into_iter().find(|level| level.word() == word)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The stage, default and lock of a feature from `version` on, until its next spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The first version for which this spec holds.
    pub version: Version,
    /// The maturity from `version` on.
    pub stage: Stage,
    /// The value if no flag sets the feature.
    pub default: bool,
    /// Whether the value is fixed to `default`. A server-level flag with the other value is then an
    /// error.
    pub locked: bool,
}

impl Spec {
    /// Returns this spec with the feature on by default.
    pub const fn on(self) -> Spec {
        Spec { default: true, ..self }
    }

    /// Returns this spec with the feature off by default.
    pub const fn off(self) -> Spec {
        Spec { default: false, ..self }
    }

    /// Returns this spec with the value locked to its default.
    pub const fn locked(self) -> Spec {
        Spec { locked: true, ..self }
    }
}

/// An alpha spec: off by default. A [`crate::Registry`] rejects an alpha that is on or locked.
pub const fn alpha(version: Version) -> Spec {
    Spec { version, stage: Stage::Alpha, default: false, locked: false }
}

/// A beta spec: on by default. Add `.off()` for a beta that operators must opt in to.
pub const fn beta(version: Version) -> Spec {
    Spec { version, stage: Stage::Beta, default: true, locked: false }
}

/// A GA spec: on by default. Add `.locked()` once nobody needs to turn the feature off.
pub const fn ga(version: Version) -> Spec {
    Spec { version, stage: Stage::Ga, default: true, locked: false }
}

/// A deprecated spec: off by default. Add `.on()` for a feature that became a part of the product,
/// and `.locked()` for its last minor release.
pub const fn deprecated(version: Version) -> Spec {
    Spec { version, stage: Stage::Deprecated, default: false, locked: false }
}

/// One row of a table of features. Help, docs, metrics and release records are made from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Unique among both levels: ASCII letters, digits and underscores, with a letter first. Never
    /// reused after the feature is removed.
    pub name: &'static str,
    /// Whether servers or the cluster decide on the value.
    pub level: Level,
    /// The maintainer of the feature: a person, a team or a part of the code. Must not be empty.
    pub owner: &'static str,
    /// The data that the feature writes and that remains after it is turned off. Empty if it leaves
    /// no data.
    pub writes: &'static str,
    /// One sentence that states what the feature changes and why an operator may want that. Must
    /// not be empty.
    pub reason: &'static str,
    /// The specs of the feature, ascending by version. At least one.
    pub specs: &'static [Spec],
}

impl Feature {
    /// Returns the spec in force at `version`. `None` before the first spec: the feature does not
    /// exist yet, which Kubernetes calls "PreAlpha".
    pub fn spec_at(&self, version: Version) -> Option<&'static Spec> {
        spec_at(self.specs, version)
    }

    /// The version that introduces the feature. `None` only without specs, which a
    /// [`crate::Registry`] rejects.
    pub fn since(&self) -> Option<Version> {
        self.specs.first().map(|spec| spec.version)
    }
}

pub(crate) fn spec_at(specs: &[Spec], version: Version) -> Option<&Spec> {
    specs.iter().rev().find(|spec| spec.version <= version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v;

    #[test]
    fn the_last_spec_at_or_below_a_version_holds() {
        const SPECS: &[Spec] = &[alpha(v(3, 6)), beta(v(3, 8)), ga(v(3, 9)).locked()];
        assert_eq!(spec_at(SPECS, v(3, 5)), None);
        assert_eq!(spec_at(SPECS, v(3, 7)), Some(&alpha(v(3, 6))));
        assert_eq!(spec_at(SPECS, v(3, 8)), Some(&beta(v(3, 8))));
        assert_eq!(spec_at(SPECS, v(4, 0)), Some(&ga(v(3, 9)).locked()));
    }

    #[test]
    fn words_read_back() {
        for stage in [Stage::Alpha, Stage::Beta, Stage::Ga, Stage::Deprecated] {
            assert_eq!(Stage::from_word(stage.word()), Some(stage));
        }
        assert_eq!(Level::from_word("cluster"), Some(Level::Cluster));
        assert_eq!(Stage::from_word("GA"), None);
    }
}
