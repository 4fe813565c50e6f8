//! Automatic compaction, by time or by number of revisions.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use node::Node;
use proto::etcdserverpb::{CompactionRequest, InternalRaftRequest};

use crate::config::AutoCompaction;

/// How often the number of revisions is looked at.
const REVISION_INTERVAL: Duration = Duration::from_secs(5 * 60);
/// Revisions are noted down this many times in one retention period.
const SAMPLES: u32 = 10;

/// Runs until dropped.
pub(crate) async fn run(node: Arc<Node>, mode: AutoCompaction) {
    match mode {
        AutoCompaction::Off => {}
        AutoCompaction::Revision(keep) => by_revision(&node, keep).await,
        AutoCompaction::Periodic(keep) => by_time(&node, keep).await,
    }
}

async fn by_revision(node: &Node, keep: i64) {
    let mut last = 0;
    loop {
        tokio::time::sleep(REVISION_INTERVAL).await;
        let revision = node.store().revision() - keep;
        if revision > last && compact(node, revision).await {
            last = revision;
        }
    }
}

/// Notes the revision ten times a period (or once in six minutes, for periods over an hour) and compacts to the one
/// of a period ago.
async fn by_time(node: &Node, keep: Duration) {
    let compact_every = keep.min(Duration::from_secs(3600));
    let sample_every = (compact_every / SAMPLES).max(Duration::from_millis(1));
    let samples_max = (keep.as_nanos() / sample_every.as_nanos()) as usize + 1;
    let mut samples = VecDeque::with_capacity(samples_max.min(10_000));
    let mut since_last = 0;
    let mut last = 0;
    loop {
        tokio::time::sleep(sample_every).await;
        samples.push_back(node.store().revision());
        if samples.len() > samples_max {
            samples.pop_front();
        }
        since_last += 1;
        if samples.len() < samples_max || since_last < SAMPLES {
            continue;
        }
        since_last = 0;
        let Some(&revision) = samples.front() else { continue };
        if revision > last && node.status().is_leader && compact(node, revision).await {
            last = revision;
        }
    }
}

/// True if the history up to `revision` is gone, by this call or by another.
async fn compact(node: &Node, revision: i64) -> bool {
    tracing::info!(revision, "starting auto compaction");
    let request = CompactionRequest { revision, physical: false };
    let request = InternalRaftRequest { compaction: Some(request), ..Default::default() };
    match node.propose(request).await {
        Ok(_) => {
            tracing::info!(revision, "completed auto compaction");
            true
        }
        Err(node::ProposeError::Apply(node::ApplyError::Mvcc(mvcc::Error::Compacted { .. }))) => true,
        Err(error) => {
            tracing::warn!(revision, %error, "failed auto compaction");
            false
        }
    }
}
