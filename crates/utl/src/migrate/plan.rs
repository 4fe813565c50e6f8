//! What a migration will do, as plain data that follows from what the dir holds.

use anyhow::{anyhow, bail};
use membership::features::FEATURES;
use serde::Serialize;
use storage::schema::{
    Version, plan as schema_plan,
    version::{Found, V3_5, V3_6, V3_8},
};

use super::hash::Hash;
use crate::{survey::Survey, v2_store};

/// A migration.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Migration {
    pub data_dir: String,
    #[serde(serialize_with = "text")]
    pub from: Version,
    #[serde(serialize_with = "text")]
    pub to: Version,
    #[serde(skip)]
    pub schema: schema_plan::Plan,
    pub steps: Vec<StepText>,
    /// The cluster version in the file, and what it becomes.
    pub cluster_version: Option<Moves>,
    /// The target of a downgrade job that ends.
    pub ends_downgrade: Option<String>,
    /// First and last committed entry that is not in the database yet.
    pub applies: Option<(u64, u64)>,
    /// First and last entry of the log that is not known to be committed.
    pub keeps: Option<(u64, u64)>,
    pub writes_snap: bool,
    /// What stops working.
    pub stops: Vec<String>,
    pub notes: Vec<String>,
    /// What only `--force` goes on with.
    pub checks: Vec<Check>,
    pub applied_index: u64,
    pub applied_term: u64,
    pub hash: Option<Hash>,
    /// Why there is work although the versions are the same.
    #[serde(skip)]
    pub log_needs_it: bool,
}

/// From one version to another.
#[derive(Debug, Serialize)]
pub(super) struct Moves {
    #[serde(serialize_with = "text")]
    pub from: Version,
    #[serde(serialize_with = "text")]
    pub to: Version,
}

#[derive(Debug, Serialize)]
pub(super) struct StepText {
    pub step: String,
    pub changes: Vec<String>,
}

/// A safety check that failed.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    pub found: String,
    pub risk: &'static str,
}

impl Migration {
    pub(super) fn is_down(&self) -> bool {
        self.schema.is_down() || self.cluster_version.as_ref().is_some_and(|moves| moves.to < moves.from)
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.steps.is_empty() && self.cluster_version.is_none() && self.ends_downgrade.is_none() && !self.log_needs_it
    }
}

pub(super) fn plan(survey: &Survey, to: Version) -> anyhow::Result<Migration> {
    let from = from(survey)?;
    let schema = schema_plan::plan_migration(from, to)?;
    let commit = survey.commit();
    let cluster = committed_cluster_version(survey);
    let job = survey.cluster.downgrade();
    let moves = cluster.filter(|cluster| *cluster != to && *cluster >= V3_5);
    let log_needs_it = survey.log.newer_than(to, survey.log.at.index()).is_some_and(|(index, _)| index <= commit)
        || to <= V3_6 && !survey.starts_from_snap;
    let steps = schema.steps.iter().map(|step| StepText {
        step: format!("{} to {}", step.from, step.to),
        changes: step.changes.iter().map(ToString::to_string).collect(),
    });
    Ok(Migration {
        data_dir: survey.dir.root().display().to_string(),
        from,
        to,
        steps: steps.collect(),
        cluster_version: moves.map(|from| Moves { from, to }),
        ends_downgrade: job.enabled.then(|| job.target.clone()),
        applies: (commit > survey.applied.0).then_some((survey.applied.0 + 1, commit)),
        keeps: (survey.log.last > commit).then_some((commit + 1, survey.log.last)),
        writes_snap: to < V3_8,
        stops: stops(survey, from, to),
        notes: notes(survey, to),
        checks: checks(survey, to, commit),
        applied_index: survey.applied.0,
        applied_term: survey.applied.1,
        hash: None,
        log_needs_it,
        schema,
    })
}

/// The version that the file will be at once every committed entry is in it.
fn from(survey: &Survey) -> anyhow::Result<Version> {
    let set = set_by_log(survey);
    match survey.found {
        Found::BeforeTerms => bail!(
            "the data dir was written before 3.5, whose files say too little: start etcd 3.5 on it once, and stop it"
        ),
        // The file rises with the cluster version, and a release of ours or etcd writes both.
        Found::At(version) => Ok(set.map_or(version, |set| rise(version, set))),
        Found::New | Found::Undecided => Ok(set.map_or(V3_5, |set| rise(V3_5, set))),
    }
}

/// A cluster version in the log raises the file with it; it never lowers it.
fn rise(version: Version, set: Version) -> Version {
    if set >= V3_6 { version.max(set) } else { version }
}

fn set_by_log(survey: &Survey) -> Option<Version> {
    let (applied, commit) = (survey.applied.0, survey.commit());
    let mut set = survey.log.versions_set.iter().rev().filter(|(index, _)| (applied + 1..=commit).contains(index));
    set.next().map(|(_, version)| *version)
}

fn committed_cluster_version(survey: &Survey) -> Option<Version> {
    set_by_log(survey).or(survey.cluster.version())
}

/// What users of the newer version will miss.
fn stops(survey: &Survey, from: Version, to: Version) -> Vec<String> {
    let mut stops = Vec::new();
    for name in survey.features.iter().filter(|_| to < V3_8) {
        let reason = FEATURES.iter().find(|feature| feature.name == name).map_or("", |feature| feature.reason);
        stops.push(format!("cluster feature {name}, which is on: {reason}"));
    }
    let lost = BROUGHT.iter().filter(|(since, _)| *since <= from && *since > to);
    stops.extend(lost.map(|(since, what)| format!("{what} (since {since})")));
    stops
}

/// What each version brought that can be missed on its data.
const BROUGHT: &[(Version, &str)] = &[
    (V3_8, "cluster feature gates, what members proposed for them, and their history"),
    (Version::new(3, 7), "RangeStream, and starting without .snap files"),
    (V3_6, "online downgrade, storage versions, and --feature-gates"),
];

fn notes(survey: &Survey, to: Version) -> Vec<String> {
    let mut notes = Vec::new();
    let others = survey.cluster.members().filter(|member| member.id != survey.cluster.local).count();
    if others > 0 {
        notes.push(format!(
            "the versions are replicated: stop all {} members, and migrate the data dir of each to {to}; \
             `migrate --compare` shows whether they agree",
            others + 1
        ));
    }
    let learners = survey.cluster.learners().count();
    if learners > 1 {
        notes.push(format!("{learners} learners: {to} starts only with --max-learners of at least that"));
    }
    if !survey.newer_keys.is_empty() {
        notes.push(format!("keys newer than the file's version: {}", survey.newer_keys.join(", ")));
    }
    let unknown = survey.log.needed.iter().filter(|needed| needed.need.is_unknown() && needed.index <= survey.commit());
    notes.extend(unknown.map(|needed| {
        let index = needed.index;
        format!("entry {index} holds fields that this binary does not know; as in etcd it is applied without them")
    }));
    notes
}

fn checks(survey: &Survey, to: Version, commit: u64) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some((index, why)) = survey.log.newer_than(to, commit) {
        checks.push(Check {
            found: format!(
                "entry {index} {why}, and is not known to be committed: start the member once, let it catch up, and stop \
                 it (a clean stop syncs the commit index)"
            ),
            risk: "The entry is kept; if it is committed later, the target cannot apply it.",
        });
    }
    let foreign = v2_store::foreign(&survey.dir.snap());
    if let Some(first) = foreign.first() {
        checks.push(Check {
            found: format!(
                "{} keys of the v2 API would be lost, such as {first}: no release since 3.6 keeps them",
                foreign.len()
            ),
            risk: "They are gone afterwards.",
        });
    }
    checks
}

fn text<S: serde::Serializer>(version: &Version, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(version)
}

/// The copy must be where the plan begins, or the plan was made for another file.
pub(super) fn check_begins(plan: &Migration, found: Found) -> anyhow::Result<()> {
    match found {
        Found::At(version) if version == plan.from => Ok(()),
        Found::New | Found::Undecided if plan.from == V3_5 => Ok(()),
        other => Err(anyhow!(
            "after all committed entries the file is at {other:?}, but the plan was made for {}; nothing was changed",
            plan.from
        )),
    }
}
