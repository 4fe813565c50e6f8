//! What a feature is: its row in a table, and its spec (stage, default, lock) from a version on.

use std::fmt;

use crate::Version;

/// How mature a feature is. The order is the order of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Off unless asked for; may leave at any time.
    Alpha,
    Beta,
    Ga,
    /// On its way out; its last minor release before that is also locked.
    Deprecated,
}

impl Stage {
    /// The value of the `stage` label in metrics and in help texts, as etcd and Kubernetes spell it: GA is empty.
    pub const fn label(self) -> &'static str {
        match self {
            Stage::Alpha => "ALPHA",
            Stage::Beta => "BETA",
            Stage::Ga => "",
            Stage::Deprecated => "DEPRECATED",
        }
    }

    /// The lower-case word for release records and tables.
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

/// Whose switch a feature is. Fixed for its whole life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Each server decides for itself, from its own flag.
    Server,
    /// The cluster has one value; a server's flag is what that server proposes.
    Cluster,
}

impl Level {
    /// The flag that sets features of this level.
    pub const fn flag(self) -> &'static str {
        match self {
            Level::Server => "--feature-gates",
            Level::Cluster => "--cluster-feature-gates",
        }
    }

    /// The word for metrics (`scope`), release records and tables.
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

/// What a feature is from `version` on, until its next spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    pub version: Version,
    pub stage: Stage,
    pub default: bool,
    /// The value is the default, and no flag can say otherwise.
    pub locked: bool,
}

impl Spec {
    /// The same spec, on by default.
    pub const fn on(self) -> Spec {
        Spec { default: true, ..self }
    }

    /// The same spec, off by default.
    pub const fn off(self) -> Spec {
        Spec { default: false, ..self }
    }

    /// The same spec, locked to its default.
    pub const fn locked(self) -> Spec {
        Spec { locked: true, ..self }
    }
}

/// Off by default.
pub const fn alpha(version: Version) -> Spec {
    Spec { version, stage: Stage::Alpha, default: false, locked: false }
}

/// On by default; `.off()` for a beta that must be asked for.
pub const fn beta(version: Version) -> Spec {
    Spec { version, stage: Stage::Beta, default: true, locked: false }
}

/// On by default; `.locked()` once nobody needs to turn it off.
pub const fn ga(version: Version) -> Spec {
    Spec { version, stage: Stage::Ga, default: true, locked: false }
}

/// Off by default; `.on()` for a feature that became a part of the product. Add `.locked()` for the last minor release.
pub const fn deprecated(version: Version) -> Spec {
    Spec { version, stage: Stage::Deprecated, default: false, locked: false }
}

/// One row of a table of features. Help, docs, metrics and release records are made from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    pub name: &'static str,
    pub level: Level,
    /// Who answers for it: a person, a team or a part of the code.
    pub owner: &'static str,
    /// The data it writes, which outlives its being turned off; empty if none.
    pub writes: &'static str,
    /// One sentence: what being on changes, and why one would want that.
    pub reason: &'static str,
    /// Ascending by version.
    pub specs: &'static [Spec],
}

impl Feature {
    /// The spec in force at `version`; `None` before the first one, where the feature is "pre-alpha": not there yet.
    pub fn spec_at(&self, version: Version) -> Option<&'static Spec> {
        spec_at(self.specs, version)
    }

    /// The version that brought the feature.
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
