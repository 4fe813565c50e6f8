//! Which cluster features are on, who proposes what, what holds a feature off; and the history of changes.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context as TaskContext, Poll, ready},
};

use featuregate::{Level, Stage};
use futures_util::{Stream, future::BoxFuture};
use membership::{
    Cluster, Enabled, Member,
    features::FEATURES,
    gate::{GATE_SINCE, GateChange, GateState, HeldOff},
    registry_version,
};
use proto::etcdserverpb::{
    Feature, FeatureGateHistoryRequest, FeatureGateHistoryResponse, FeatureGateStatusRequest,
    FeatureGateStatusResponse, FeatureProposal,
};
use tokio::sync::watch;
use tonic::Status;

use super::Context;
use crate::status;

/// Changes in one answer of the history stream.
const CHANGES_PER_ANSWER_MAX: usize = 100;

impl Context {
    /// Served at every cluster version. Learners answer from what they have.
    pub(super) async fn feature_gate_status(
        &self,
        request: &FeatureGateStatusRequest,
    ) -> Result<FeatureGateStatusResponse, Status> {
        self.settle(!request.serializable && !self.node.is_learner()).await?;
        // Before the state, so that it is not ahead of it.
        let applied_index = self.node.status().applied_index.max(self.node.gates().version());
        let cluster = self.node.cluster();
        Ok(FeatureGateStatusResponse {
            header: Some(self.header()),
            features: features(&cluster, &request.features)?,
            cluster_version: cluster.version().map(|v| v.stored()).unwrap_or_default(),
            gate_index: cluster.gate().index,
            relevant_index: cluster.gate().relevant_index,
            applied_index: as_of(applied_index, cluster.gate()),
        })
    }

    pub(super) fn feature_gate_history(&self, request: &FeatureGateHistoryRequest) -> Result<GateHistory, Status> {
        // Subscribed before the first look, so that no change falls between.
        let changed = self.node.gates().subscribe();
        let cluster = self.node.cluster();
        // Without an index, from the oldest that there is.
        if request.from_index != 0 {
            check_kept(&cluster.gate().history, request.from_index)?;
        }
        let (from, follow) = (request.from_index, request.follow);
        Ok(GateHistory { context: self.clone(), from, follow, changed: Some(changed), waiting: None, told: false })
    }
}

/// The entry that an answer is as of. Applied entries are counted lot by lot, and the state may be within the next one.
fn as_of(applied: u64, gate: &GateState) -> u64 {
    let proposals = gate.proposals.values().map(|proposal| proposal.index).max().unwrap_or(0);
    applied.max(gate.index).max(gate.relevant_index).max(proposals)
}

/// The features asked for, or all that are known: those with a spec at the cluster version, and those that a member
/// proposes.
pub(super) fn features(cluster: &Cluster, names: &[String]) -> Result<Vec<Feature>, Status> {
    let known = known(cluster);
    if let Some(name) = names.iter().find(|name| !known.contains(*name)) {
        let version = cluster.version().map_or("undecided".into(), |v| v.to_string());
        return Err(status::unknown_feature(name, &version, &known));
    }
    let all = if names.is_empty() { &known } else { names };
    let enabled = Enabled::of(cluster);
    Ok(all.iter().map(|name| feature(cluster, enabled, name)).collect())
}

/// By name. Before there is a gate, the features of its first version are shown, with what holds them off.
fn known(cluster: &Cluster) -> Vec<String> {
    let version = registry_version(cluster.version().map_or(GATE_SINCE, |version| version.max(GATE_SINCE)));
    let rows = FEATURES.iter().filter(|row| row.level == Level::Cluster && row.spec_at(version).is_some());
    let proposed = cluster.gate().proposals.values().flat_map(|proposal| proposal.features.keys().cloned());
    let names: std::collections::BTreeSet<_> = rows.map(|row| row.name.to_owned()).chain(proposed).collect();
    names.into_iter().collect()
}

fn feature(cluster: &Cluster, enabled: Enabled, name: &str) -> Feature {
    let version = registry_version(cluster.version().map_or(GATE_SINCE, |version| version.max(GATE_SINCE)));
    let spec = FEATURES.iter().find(|row| row.name == name).and_then(|row| row.spec_at(version));
    let is_locked = spec.is_some_and(|spec| spec.locked);
    // What this binary does not know it cannot have on; the gate may.
    let enabled = enabled.has_named(name) || (spec.is_none() && cluster.gate().enabled.contains(name));
    let held_off_by = match cluster.version() {
        _ if enabled => Vec::new(),
        Some(version) if is_locked && cluster.has_gate() => vec![HeldOff::Locked(version).to_string()],
        _ => cluster.held_off(name).iter().map(ToString::to_string).collect(),
    };
    Feature {
        name: name.to_owned(),
        enabled,
        stage: spec.map(|spec| stage(spec.stage).to_owned()).unwrap_or_default(),
        default_enabled: spec.is_some_and(|spec| spec.default),
        locked: is_locked,
        proposals: cluster.members().map(|member| proposal(cluster, member, name)).collect(),
        held_off_by,
    }
}

fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Ga => "GA",
        other => other.label(),
    }
}

fn proposal(cluster: &Cluster, member: &Member, name: &str) -> FeatureProposal {
    let proposal = cluster.current_proposal(member.id);
    let value = proposal.and_then(|proposal| proposal.features.get(name)).copied();
    FeatureProposal {
        member_id: member.id.0,
        member_name: member.name.clone(),
        is_learner: member.is_learner,
        proposed: proposal.is_some(),
        known: value.is_some(),
        enabled: value.unwrap_or(false),
    }
}

/// Whether all changes from an index on are still known.
fn check_kept(history: &VecDeque<GateChange>, from: u64) -> Result<(), Status> {
    let is_full = history.len() >= membership::gate::HISTORY_MAX;
    match history.front().map(|change| change.index).filter(|oldest| is_full && from < *oldest) {
        Some(oldest) => Err(status::history_gone(from, oldest)),
        None => Ok(()),
    }
}

/// The changes from an index on; with `follow`, also those to come.
pub(crate) struct GateHistory {
    context: Context,
    /// The next change to send is at this index or later.
    from: u64,
    follow: bool,
    /// Elsewhere while it is waited for.
    changed: Option<watch::Receiver<u64>>,
    waiting: Option<BoxFuture<'static, Option<watch::Receiver<u64>>>>,
    /// Whether anything was sent: a history without changes is answered by one empty message.
    told: bool,
}

impl GateHistory {
    /// The next lot of changes, if there is one now.
    fn next(&mut self) -> Option<Result<FeatureGateHistoryResponse, Status>> {
        let cluster = self.context.node.cluster();
        let history = &cluster.gate().history;
        if self.told
            && let Err(gone) = check_kept(history, self.from)
        {
            return Some(Err(gone));
        }
        let due = history.iter().filter(|change| change.index >= self.from).take(CHANGES_PER_ANSWER_MAX);
        let changes: Vec<_> = due.map(node::change_record).collect();
        if changes.is_empty() && self.told {
            return None;
        }
        self.from = changes.last().map_or(self.from, |change| change.index + 1);
        self.told = true;
        Some(Ok(FeatureGateHistoryResponse { header: Some(self.context.header()), changes }))
    }
}

impl Stream for GateHistory {
    type Item = Result<FeatureGateHistoryResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(waiting) = &mut this.waiting {
                this.changed = ready!(waiting.as_mut().poll(cx));
                this.waiting = None;
                if this.changed.is_none() {
                    return Poll::Ready(None);
                }
            }
            if let Some(changed) = &mut this.changed {
                changed.mark_unchanged();
            }
            if let Some(answer) = this.next() {
                return Poll::Ready(Some(answer));
            }
            let Some(mut changed) = this.changed.take().filter(|_| this.follow) else { return Poll::Ready(None) };
            this.waiting = Some(Box::pin(async move { changed.changed().await.ok().map(|()| changed) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use membership::{
        MemberId,
        gate::{Cause, HISTORY_MAX, Proposal},
    };
    use proto::Version;

    use super::*;

    /// While a lot of entries is applied the count of applied ones lags behind what they did.
    #[test]
    fn an_answer_is_never_as_of_an_older_entry_than_what_it_shows() {
        let proposal = Proposal { version: Version::new(3, 8), index: 9, features: Default::default() };
        let proposals = [(MemberId(1), proposal)].into_iter().collect();
        let gate = GateState { index: 7, relevant_index: 8, proposals, ..Default::default() };
        assert_eq!(as_of(5, &gate), 9);
        assert_eq!(as_of(20, &gate), 20);
    }

    #[test]
    fn what_is_no_longer_known_is_out_of_range() {
        let (version, before, after) = (Version::new(3, 8), Default::default(), Default::default());
        let change = GateChange { index: 0, cause: Cause::Agreed, version, before, after };
        let history = |len: usize| (11..).map(|index| GateChange { index, ..change.clone() }).take(len).collect();
        let full: VecDeque<_> = history(HISTORY_MAX);
        let gone = check_kept(&full, 10).unwrap_err();
        assert_eq!(gone.code(), tonic::Code::OutOfRange);
        assert!(gone.message().contains("begins at index 11; 10 is"), "{}", gone.message());
        assert!(check_kept(&full, 11).is_ok());
        assert!(check_kept(&history(HISTORY_MAX - 1), 1).is_ok(), "nothing was ever dropped");
    }
}
