//! The log of the new member: one addition for each member, committed in term 1, and a snapshot after them.
//!
//! The bytes are those of etcdutl 3.7, except for the state in the `.snap` file: etcd up to 3.6 reads the members from
//! it, and takes the parts that are left out here as empty.

use node::{DataDir, snapshot_record};
use prost::Message;
use proto::raftpb::{self, ConfChangeType, EntryType};
use wal::{Wal, snapfile};

use super::{NewCluster, database::record};
use crate::v2_store;

pub(super) const TERM: u64 = 1;

pub(super) fn write(dir: &DataDir, cluster: &NewCluster) -> anyhow::Result<()> {
    let metadata = wal::Metadata { node_id: cluster.local.0, cluster_id: cluster.id.0 };
    let mut wal = Wal::create(&dir.wal(), &metadata.encode(), wal::Options::default())?;
    let entries = entries(cluster);
    let index = entries.len() as u64;
    let vote = cluster.members.first().map(|member| member.id.0);
    let state = raftpb::HardState { term: Some(TERM), vote, commit: Some(index) };
    wal.save(Some(&state), &entries)?;
    let conf_state = conf_state(cluster);
    let metadata =
        raftpb::SnapshotMetadata { conf_state: Some(conf_state.clone()), index: Some(index), term: Some(TERM) };
    let data = v2_store::render(&cluster.members, [], None).to_string();
    snapfile::save(&dir.snap(), &raftpb::Snapshot { data: Some(data.into()), metadata: Some(metadata) })?;
    wal.save_snapshot(&snapshot_record(index, TERM, conf_state))?;
    wal.close()?;
    Ok(())
}

pub(super) fn conf_state(cluster: &NewCluster) -> raftpb::ConfState {
    let voters = cluster.members.iter().map(|member| member.id.0).collect();
    raftpb::ConfState { voters, ..raftpb::ConfState::default() }
}

fn entries(cluster: &NewCluster) -> Vec<raftpb::Entry> {
    let entry = |(member, index): (&membership::Member, u64)| {
        let change = raftpb::ConfChange {
            id: None,
            r#type: Some(ConfChangeType::ConfChangeAddNode as i32),
            node_id: Some(member.id.0),
            context: Some(record(member).to_json().into()),
        };
        raftpb::Entry {
            term: Some(TERM),
            index: Some(index),
            r#type: Some(EntryType::EntryConfChange as i32),
            data: Some(change.encode_to_vec().into()),
        }
    };
    cluster.members.iter().zip(1..).map(entry).collect()
}
