//! Migrations as plain data: what a file needs to come from one version to another, one minor at a time.
//!
//! A plan follows from the table and the two versions alone. [`super::migrate`] carries it out and has no choices left.

use std::fmt;

use super::{
    Version,
    table::{Down, Part, ROWS, Row, Up},
    version::{V3_5, V3_6},
};

/// The oldest version a file can be brought to: the first whose files keep terms.
pub const VERSION_MIN: Version = V3_5;
/// The newest: this binary's.
pub const VERSION_MAX: Version = super::version::V3_8;

/// The way from one version to another. No steps if they are the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub from: Version,
    pub to: Version,
    pub steps: Vec<Step>,
}

/// One minor up or down.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub from: Version,
    pub to: Version,
    pub changes: Vec<Change>,
}

/// What a step does, in the order given.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// From here on a server may write it; there is nothing to write yet.
    Allowed(&'static Row),
    /// The file says that it is at this version.
    SetVersion(&'static Row, Version),
    /// Every key of the row goes.
    Removed(&'static Row),
    /// A part of every value of the row goes; the row itself stays.
    PartRemoved(&'static Row, Part),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("target version \"{0}\" not supported. Minimal \"{VERSION_MIN}\"")]
    TooOld(Version),
    #[error("version {0} is newer than {VERSION_MAX}, the newest this binary knows: use the tool of {0}")]
    TooNew(Version),
    #[error("changing major storage version is not supported: from {0} to {1}")]
    Major(Version, Version),
}

/// What lies between two versions of a file.
pub fn plan_migration(from: Version, to: Version) -> Result<Plan, PlanError> {
    plan_over(ROWS, from, to)
}

fn plan_over(rows: &'static [Row], from: Version, to: Version) -> Result<Plan, PlanError> {
    if from.major != to.major {
        return Err(PlanError::Major(from, to));
    }
    for version in [from, to] {
        match version {
            v if v < VERSION_MIN => return Err(PlanError::TooOld(v)),
            v if v > VERSION_MAX => return Err(PlanError::TooNew(v)),
            _ => {}
        }
    }
    let at = |minor| Version::new(from.major, minor);
    let steps = if from <= to {
        (from.minor..to.minor).map(|minor| up(rows, at(minor), at(minor + 1))).collect()
    } else {
        (to.minor..from.minor).rev().map(|minor| down(rows, at(minor + 1), at(minor))).collect()
    };
    Ok(Plan { from, to, steps })
}

fn up(rows: &'static [Row], from: Version, to: Version) -> Step {
    let brought = rows.iter().filter(|row| row.since == to && row.up == Up::WhenUsed).map(Change::Allowed);
    Step { from, to, changes: brought.chain(set_version(rows, to)).collect() }
}

fn down(rows: &'static [Row], from: Version, to: Version) -> Step {
    let gone = rows.iter().filter(|row| row.since == from && row.down == Down::Removed).map(Change::Removed);
    let parts = rows.iter().filter(|row| row.since < from).flat_map(|row| {
        let newer = row.parts().into_iter().filter(move |part| part.since == from);
        newer.map(move |part| Change::PartRemoved(row, part))
    });
    Step { from, to, changes: gone.chain(parts).chain(set_version(rows, to)).collect() }
}

fn set_version(rows: &'static [Row], to: Version) -> impl Iterator<Item = Change> {
    let rows = rows.iter().filter(move |row| row.up == Up::Version && row.since <= to && to >= V3_6);
    rows.map(move |row| Change::SetVersion(row, to))
}

impl Plan {
    pub fn is_down(&self) -> bool {
        self.to < self.from
    }

    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.steps.iter().flat_map(|step| &step.changes)
    }
}

impl PartialEq for Change {
    fn eq(&self, other: &Change) -> bool {
        self.to_string() == other.to_string()
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = |row: &Row| format!("{}/{}", row.bucket.name(), row.key);
        match self {
            Change::Allowed(row) => write!(f, "{} may be written ({})", name(row), row.note),
            Change::SetVersion(row, version) => write!(f, "{} = {}", name(row), version.stored()),
            Change::Removed(row) => write!(f, "{} removed ({})", name(row), row.note),
            Change::PartRemoved(row, part) => write!(f, "{}: {} removed", name(row), part.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{
        Bucket,
        table::{Encoding, Key},
    };

    const fn v(minor: u16) -> Version {
        Version::new(3, minor)
    }

    fn lines(plan: &Plan) -> Vec<String> {
        let of = |step: &Step| {
            let changes: Vec<_> = step.changes.iter().map(ToString::to_string).collect();
            format!("{} to {}: {}", step.from, step.to, changes.join("; "))
        };
        plan.steps.iter().map(of).collect()
    }

    #[test]
    fn up_and_down_the_whole_way() {
        assert_eq!(
            lines(&plan_migration(v(5), v(8)).unwrap()),
            [
                "3.5 to 3.6: meta/storageVersion = 3.6.0",
                "3.6 to 3.7: meta/storageVersion = 3.7.0",
                "3.7 to 3.8: cluster/featureGate may be written (the cluster features that are on); \
                 cluster/featureGateHistory/<log index, 16 hex digits> may be written (what an entry switched); \
                 cluster/featureGateProposal/<member id, 16 hex digits> may be written (what a member wants); \
                 meta/storageVersion = 3.8.0",
            ]
        );
        assert_eq!(
            lines(&plan_migration(v(8), v(5)).unwrap()),
            [
                "3.8 to 3.7: cluster/featureGate removed (the cluster features that are on); \
                 cluster/featureGateHistory/<log index, 16 hex digits> removed (what an entry switched); \
                 cluster/featureGateProposal/<member id, 16 hex digits> removed (what a member wants); \
                 meta/storageVersion = 3.7.0",
                "3.7 to 3.6: meta/storageVersion = 3.6.0",
                "3.6 to 3.5: meta/storageVersion removed (the version whose fields are here)",
            ]
        );
    }

    #[test]
    fn every_jump_has_a_step_for_each_minor_and_ends_where_it_should() {
        for from in 5..=8 {
            for to in 5..=8 {
                let plan = plan_migration(v(from), v(to)).unwrap();
                assert_eq!(plan.steps.len(), usize::from(from.abs_diff(to)));
                assert!(plan.steps.windows(2).all(|w| w[0].to == w[1].from));
                assert!(plan.steps.iter().all(|step| step.from.minor.abs_diff(step.to.minor) == 1));
                let ends = plan.steps.last().map_or(v(from), |step| step.to);
                assert_eq!((ends, plan.is_down()), (v(to), to < from));
                let last = plan.changes().filter(|c| matches!(c, Change::SetVersion(..))).last();
                if from != to && to >= 6 {
                    assert_eq!(last.unwrap().to_string(), format!("meta/storageVersion = 3.{to}.0"));
                }
            }
        }
    }

    #[test]
    fn the_way_back_removes_what_the_way_up_allowed() {
        for high in 6..=8 {
            let names = |plan: Plan| {
                let mut names: Vec<_> = plan
                    .changes()
                    .filter_map(|change| match change {
                        Change::Allowed(row) | Change::Removed(row) if row.up == Up::WhenUsed => {
                            Some(row.key.to_string())
                        }
                        _ => None,
                    })
                    .collect();
                names.sort();
                names
            };
            let up = names(plan_migration(v(5), v(high)).unwrap());
            assert_eq!(up, names(plan_migration(v(high), v(5)).unwrap()));
        }
    }

    #[test]
    fn versions_out_of_reach_are_named() {
        let error = |from, to| plan_migration(from, to).unwrap_err().to_string();
        assert_eq!(error(v(8), v(4)), "target version \"3.4\" not supported. Minimal \"3.5\"");
        assert!(error(v(9), v(8)).starts_with("version 3.9 is newer than 3.8"));
        assert!(error(v(8), v(9)).starts_with("version 3.9 is newer than 3.8"));
        assert!(error(v(8), Version::new(4, 0)).contains("major"));
    }

    #[test]
    fn a_part_goes_with_its_own_version() {
        static ROW: &[Row] = &[Row {
            bucket: Bucket::Members,
            key: Key::Form("member id in hex"),
            since: v(0),
            encoding: Encoding::Json(&[("id", v(0)), ("zone", v(7))]),
            up: Up::WhenUsed,
            down: Down::Stays,
            note: "a member",
        }];
        let plan = plan_over(ROW, v(8), v(5)).unwrap();
        assert_eq!(
            lines(&plan),
            ["3.8 to 3.7: ", "3.7 to 3.6: members/<member id in hex>: zone removed", "3.6 to 3.5: "]
        );
    }
}
