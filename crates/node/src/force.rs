//! `--force-new-cluster`: a cluster of this member alone, out of what its data dir holds.
//!
//! Entries that were not committed are dropped; then the log is made to say that every other member was removed.

use std::collections::BTreeSet;

use membership::{Change, Cluster, MemberId, plan_force_new_cluster};
use prost::Message;
use proto::raftpb::{self, ConfChangeType, EntryType};
use wal::Wal;

/// Appends the entries that make `cluster.local` the only member, as committed.
pub(crate) fn alone(
    wal: &mut Wal,
    cluster: &Cluster,
    state: &mut raftpb::HardState,
    entries: &mut Vec<raftpb::Entry>,
) -> Result<(), wal::Error> {
    let commit = state.commit();
    let before = entries.len();
    entries.retain(|entry| entry.index() <= commit);
    if entries.len() < before {
        tracing::warn!(commit_index = commit, dropped = before - entries.len(), "discarding uncommitted log entries");
    }
    let added = changes(cluster, entries, state.term(), commit);
    wal.append(None, &added)?;
    state.commit = Some(commit + added.len() as u64);
    wal.append(Some(state), &[])?;
    wal.sync()?;
    tracing::warn!(
        local_member_id = %cluster.local, cluster_id = %cluster.id, commit_index = state.commit(),
        "forcing restart of the member as a cluster of its own"
    );
    entries.extend(added);
    Ok(())
}

fn changes(cluster: &Cluster, entries: &[raftpb::Entry], term: u64, commit: u64) -> Vec<raftpb::Entry> {
    let mut voters: BTreeSet<_> = cluster.voters().collect();
    let mut learners: BTreeSet<_> = cluster.learners().collect();
    for change in entries.iter().filter(|e| e.r#type() == EntryType::EntryConfChange).filter_map(decode) {
        let id = MemberId(change.node_id());
        voters.remove(&id);
        learners.remove(&id);
        match change.r#type() {
            ConfChangeType::ConfChangeAddNode | ConfChangeType::ConfChangeUpdateNode => voters.insert(id),
            ConfChangeType::ConfChangeAddLearnerNode => learners.insert(id),
            ConfChangeType::ConfChangeRemoveNode => false,
        };
    }
    let local = cluster.local;
    let is_learner = learners.remove(&local);
    let ids = voters.union(&learners).copied().chain(is_learner.then_some(local)).collect();
    let promotion = is_learner.then_some(Change::Promote(local));
    let all = promotion.into_iter().chain(plan_force_new_cluster(&ids, local));
    all.zip(commit + 1..).map(|(change, index)| entry(&change.encode(0), term, index)).collect()
}

fn decode(entry: &raftpb::Entry) -> Option<raftpb::ConfChange> {
    raftpb::ConfChange::decode(entry.data.clone().unwrap_or_default()).ok()
}

fn entry(change: &raftpb::ConfChange, term: u64, index: u64) -> raftpb::Entry {
    raftpb::Entry {
        term: Some(term),
        index: Some(index),
        r#type: Some(EntryType::EntryConfChange as i32),
        data: Some(change.encode_to_vec().into()),
    }
}
