//! The files of a member: entries of its log that only members at 3.8 understand, and leases.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use prost::Message;
use proto::{
    Version,
    etcdserverpb::InternalRaftRequest,
    membershippb::FeatureGateProposal,
    raftpb::{Entry, EntryType},
    walpb,
};
use storage::schema::Bucket;
use wal::Wal;

/// An entry that belongs to the gate or to a feature.
#[derive(Clone, Debug)]
pub(super) enum Ours {
    Proposal { member: u64, proposal: FeatureGateProposal },
    Decision { decided_from: u64 },
    Requirement,
    Increment,
}

/// The number of entries of a log, and those of them that only Lockgate understands, by index. From the start, unless segments are gone.
pub(super) fn read(data_dir: &Path) -> Result<(usize, Vec<(u64, Ours)>)> {
    let entries = entries(data_dir)?;
    let mut all = Vec::new();
    for entry in entries.iter().filter(|entry| entry.r#type() == EntryType::EntryNormal) {
        let request = InternalRaftRequest::decode(entry.data())
            .with_context(|| format!("entry {} of {}", entry.index(), data_dir.display()))?;
        all.extend(ours(request).into_iter().map(|ours| (entry.index(), ours)));
    }
    Ok((entries.len(), all))
}

/// Nothing in the log is newer than `version`, neither what we look for by name nor by the annotations.
pub(super) fn check_nothing_newer(data_dir: &Path, version: Version) -> Result<usize> {
    let (count, ours) = read(data_dir)?;
    if let Some((index, what)) = ours.first() {
        bail!("entry {index} in {} is ours: {what:?}", data_dir.display());
    }
    for entry in entries(data_dir)? {
        let needs = proto::min_version_of_entry(&entry)?;
        let known = matches!(needs, proto::MinVersion::Known(needs) if needs <= version);
        ensure!(known, "entry {} in {} needs {needs:?}", entry.index(), data_dir.display());
    }
    ensure!(count > 0, "the log in {} has no entry", data_dir.display());
    Ok(count)
}

fn entries(data_dir: &Path) -> Result<Vec<Entry>> {
    let dir = data_dir.join("member/wal");
    let read = Wal::read(&dir, &walpb::Snapshot::default());
    Ok(read.with_context(|| format!("reading the log in {}", dir.display()))?.entries)
}

fn ours(request: InternalRaftRequest) -> Vec<Ours> {
    let mut all = Vec::new();
    if let Some(set) = request.cluster_member_attr_set
        && let Some(proposal) = set.member_attributes.and_then(|attributes| attributes.proposed_feature_gates)
    {
        all.push(Ours::Proposal { member: set.member_id, proposal });
    }
    let decision = request.cluster_version_set.and_then(|set| set.feature_gates);
    all.extend(decision.map(|decision| Ours::Decision { decided_from: decision.decided_from }));
    let required = request.header.filter(|header| !header.required_features.is_empty());
    all.extend(required.map(|_| Ours::Requirement));
    all.extend(request.increment.map(|_| Ours::Increment));
    all
}

/// Keys and values of a bucket, in order.
pub(super) type Stored = Vec<(Vec<u8>, Vec<u8>)>;

/// The last applied entry of a database that nobody has open, and its leases as they are stored.
pub(super) fn leases(db: &Path) -> Result<(u64, Stored)> {
    let file = bolt::Db::open(db, bolt::Options { read_only: true, ..Default::default() })?;
    let tx = file.begin_read();
    let mut all = Vec::new();
    if let Some(bucket) = tx.bucket(Bucket::Lease.name().as_bytes())? {
        for pair in bucket.iter() {
            let (key, value) = pair?;
            all.push((key.to_vec(), value.to_vec()));
        }
    }
    let meta = tx.bucket(Bucket::Meta.name().as_bytes())?.context("the database has no meta bucket")?;
    let index = meta.get(storage::schema::meta::CONSISTENT_INDEX)?.context("it has no consistent index")?;
    Ok((u64::from_be_bytes(index.try_into()?), all))
}
