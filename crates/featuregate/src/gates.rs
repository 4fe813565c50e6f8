//! `Gates`: the values of one level's features at one version, and how to look at them.

use std::fmt;

use crate::{ALL_ALPHA, ALL_BETA, Level, Spec, Stage, Version};

/// Resolved values. A feature that does not exist at the version is not in here, and counts as off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gates {
    pub(crate) level: Level,
    pub(crate) version: Version,
    /// By name.
    pub(crate) gates: Vec<Gate>,
    pub(crate) all_alpha: bool,
    pub(crate) all_beta: bool,
}

/// One feature's value, beside the spec that it was resolved under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    pub name: &'static str,
    pub spec: Spec,
    pub enabled: bool,
}

/// One sample of a gauge like `etcd_server_feature_enabled{name,stage}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricRow {
    pub name: &'static str,
    /// `ALPHA`, `BETA`, empty for GA, `DEPRECATED`.
    pub stage: &'static str,
    /// `server` or `cluster`.
    pub scope: &'static str,
    /// 1 is on, 0 is off.
    pub value: u8,
}

impl Gates {
    pub fn level(&self) -> Level {
        self.level
    }

    /// The version the values were resolved at; below the binary's own when an older one is emulated.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Off, too, if there is no such feature at this version; [`Gates::get`] tells these apart.
    pub fn enabled(&self, name: &str) -> bool {
        self.get(name).is_some_and(|gate| gate.enabled)
    }

    /// `None`: no such feature of this level at this version.
    pub fn get(&self, name: &str) -> Option<&Gate> {
        let at = self.gates.binary_search_by(|gate| gate.name.cmp(name)).ok()?;
        self.gates.get(at)
    }

    /// By name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Gate> {
        self.gates.iter()
    }

    /// One row a feature, by name. At server level the pseudo-gates have rows too, as in etcd; a cluster has no value
    /// for them, because they are a manner of speaking of one member's flag.
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
