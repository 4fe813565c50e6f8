//! The cluster feature gate on one page, for people. Programs ask `Maintenance.FeatureGateStatus`.

use membership::{
    Cluster, MemberId,
    gate::{Cause, GateChange},
};
use proto::etcdserverpb::{Feature, FeatureProposal};
use serde::Serialize;

use super::{Context, feature_gate::features};

/// Changes on the page; the rest is in the history stream.
const CHANGES_MAX: usize = 20;

// Fields in the order in which they are read.
#[derive(Serialize)]
struct Page {
    note: &'static str,
    member: String,
    cluster_version: String,
    applied_index: u64,
    gate_index: u64,
    relevant_index: u64,
    own_proposal: &'static str,
    features: Vec<Row>,
    last_changes: Vec<Change>,
}

const NOTE: &str = "This member's view; others may be ahead. For programs: POST /v3/maintenance/featuregate.";

#[derive(Serialize)]
struct Row {
    name: String,
    stage: String,
    state: &'static str,
    held_off_by: Vec<String>,
    proposals: Vec<Proposed>,
}

#[derive(Serialize)]
struct Proposed {
    member: String,
    vote: &'static str,
    proposes: &'static str,
}

#[derive(Serialize)]
struct Change {
    index: u64,
    turned_on: Vec<String>,
    turned_off: Vec<String>,
    cause: String,
    member: Option<String>,
    cluster_version: String,
}

impl Context {
    /// Serializable: what this member has applied.
    pub(crate) fn feature_gate_page(&self) -> String {
        let applied_index = self.node.status().applied_index;
        let cluster = self.node.cluster();
        let gate = cluster.gate();
        // No name is asked for, so none is unknown.
        let features = features(&cluster, &[]).unwrap_or_default();
        let page = Page {
            note: NOTE,
            member: label(&cluster, cluster.local),
            cluster_version: cluster.version().map_or("not decided".into(), |version| version.to_string()),
            applied_index,
            gate_index: gate.index,
            relevant_index: gate.relevant_index,
            own_proposal: if self.node.is_proposal_due() { "due" } else { "stored, or not wanted at this version" },
            features: features.into_iter().map(row).collect(),
            last_changes: gate.history.iter().rev().take(CHANGES_MAX).map(|c| change(&cluster, c)).collect(),
        };
        serde_json::to_string_pretty(&page).unwrap_or_default()
    }
}

fn row(feature: Feature) -> Row {
    Row {
        state: on(feature.enabled),
        stage: feature.stage + if feature.locked { ", locked" } else { "" },
        held_off_by: feature.held_off_by,
        proposals: feature.proposals.into_iter().map(proposed).collect(),
        name: feature.name,
    }
}

fn proposed(proposal: FeatureProposal) -> Proposed {
    let proposes = match (proposal.proposed, proposal.known) {
        (false, _) => "nothing yet",
        (true, false) => "nothing: it does not know the feature",
        (true, true) => on(proposal.enabled),
    };
    let member = named(proposal.member_name, MemberId(proposal.member_id));
    Proposed { member, vote: if proposal.is_learner { "learner" } else { "voter" }, proposes }
}

fn change(cluster: &Cluster, change: &GateChange) -> Change {
    let (cause, member) = match change.cause {
        Cause::Agreed => ("all voters agree, and the leader has decided".to_owned(), None),
        Cause::Proposal(id) => ("a member's proposal does not say on any more".to_owned(), Some(id)),
        Cause::VoterAdded(id) => ("a voter was added, which has not proposed yet".to_owned(), Some(id)),
        Cause::VoterPromoted(id) => ("a learner was promoted whose proposal says less".to_owned(), Some(id)),
        Cause::Version => (format!("the cluster version became {}", change.version), None),
    };
    Change {
        index: change.index,
        turned_on: change.after.difference(&change.before).cloned().collect(),
        turned_off: change.before.difference(&change.after).cloned().collect(),
        cause,
        member: member.map(|id| label(cluster, id)),
        cluster_version: change.version.to_string(),
    }
}

fn on(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// A member that is gone, or has not started yet, has no name.
fn label(cluster: &Cluster, id: MemberId) -> String {
    named(cluster.member(id).map(|member| member.name.clone()).unwrap_or_default(), id)
}

fn named(name: String, id: MemberId) -> String {
    if name.is_empty() { id.to_string() } else { format!("{name} ({id})") }
}
