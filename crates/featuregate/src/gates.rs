//! `Gates`: the values of one level's features at one version, and how to look at them.

use std::fmt;

use crate::{ALL_ALPHA, ALL_BETA, Level, Spec, Stage, Version};

/// The values of one level's features at one version. A feature that does not exist at that version
/// has no entry and counts as off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gates {
    pub(crate) level: Level,
    pub(crate) version: Version,
    /// By name.
    pub(crate) gates: Vec<Gate>,
    pub(crate) all_alpha: bool,
    pub(crate) all_beta: bool,
}

/// The value of one feature, with the spec that it was resolved under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The feature's name, as registered.
    pub name: &'static str,
    /// The spec in force at [`Gates::version`].
    pub spec: Spec,
    /// Whether the feature is on, after settings, `AllAlpha`, `AllBeta` and locks were applied.
    pub enabled: bool,
}

/// One sample of a gauge such as `etcd_server_feature_enabled{name,stage}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricRow {
    /// The feature's name. At server level also [`ALL_ALPHA`] and [`ALL_BETA`].
    pub name: &'static str,
    /// `ALPHA`, `BETA`, `DEPRECATED`, or empty for GA.
    pub stage: &'static str,
    /// The level: `server` or `cluster`.
    pub scope: &'static str,
    /// 1 if the feature is on, 0 if it is off.
    pub value: u8,
}

impl Gates {
    /// The level whose features these are. Features of the other level have no entry.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The version at which the values were resolved. It is lower than the binary's version if an
    /// older one is emulated.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether the feature is on. False also if it does not exist at this version; [`Gates::get`]
    /// tells the two cases apart.
    pub fn enabled(&self, name: &str) -> bool {
        self.get(name).is_some_and(|gate| gate.enabled)
    }

    /// Returns the entry of a feature. `None` if this level has no such feature at this version.
    pub fn get(&self, name: &str) -> Option<&Gate> {
        let at = self.gates.binary_search_by(|gate| gate.name.cmp(name)).ok()?;
        self.gates.get(at)
    }

    /// The entries of all features of the level that exist at the version, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Gate> {
        self.gates.iter()
    }

    /// One row per feature, sorted by name. Server-level gates start with rows for [`ALL_ALPHA`]
    /// and [`ALL_BETA`], as in etcd. Cluster-level gates have no such rows, because these two names
    /// exist only in a member's flag.
    pub fn metric_rows(&self) -> impl Iterator<Item = MetricRow> + '_ {
        let scope = self.level.word();
        let row = move |name, stage: Stage, on: bool| MetricRow { name, stage: stage.label(), scope, value: on.into() };
        let pseudo = [row(ALL_ALPHA, Stage::Alpha, self.all_alpha), row(ALL_BETA, Stage::Beta, self.all_beta)];
        let pseudo = pseudo.into_iter().filter(|_| self.level == Level::Server);
        pseudo.chain(self.gates.iter().map(move |gate| row(gate.name, gate.spec.stage, gate.enabled)))
    }
}

/// `A=true,B=false`: every feature, by name.
impl fmt::Display for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, gate) in self.gates.iter().enumerate() {
            write!(f, "{}{}={}", if i == 0 { "" } else { "," }, gate.name, gate.enabled)?;
        }
        Ok(())
    }
}
