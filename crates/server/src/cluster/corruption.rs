//! Finding members whose data differs: at start, now and then, and at compactions. As etcd does it.

use std::time::Duration;

use futures_util::future::join_all;
use membership::MemberId;
use peer::{ControlError, HashKv};
use proto::etcdserverpb::{AlarmRequest, AlarmType, InternalRaftRequest, alarm_request::AlarmAction};

use super::Part;

/// A member's answer.
type Answer = (MemberId, Result<HashKv, ControlError>);

impl Part {
    /// Before anything is served: this member must not bring other data into the cluster than its peers have.
    pub(crate) async fn check_at_start(&self) -> Result<(), String> {
        let local = self.node.member_id();
        tracing::info!(local_member_id = %local, timeout = ?self.timeout(), "starting initial corruption check");
        let own = self.newest_hash().await.map_err(|e| format!("{local} failed to fetch hash ({e})"))?;
        let mut differs = false;
        for (id, answer) in self.ask_hashes(own.hash_revision).await {
            match answer {
                Ok(other) if other.hash != own.hash && other.compact_revision == own.compact_revision => {
                    tracing::warn!(remote_peer_id = %id, ?own, ?other, "found different hash values from remote peer");
                    differs = true;
                }
                Ok(other) if other.hash != own.hash => {
                    tracing::warn!(
                        remote_peer_id = %id, ?own, ?other, "found different compact revision values from remote peer"
                    );
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(remote_peer_id = %id, %error, "cannot fetch hash from remote peer"),
            }
        }
        if differs {
            return Err(format!("{local} found data inconsistency with peers"));
        }
        tracing::info!(local_member_id = %local, "initial corruption checking passed; no corruption");
        Ok(())
    }

    /// `--corrupt-check-time`: the leader compares all members with itself.
    pub(crate) async fn watch_corruption(self, interval: Duration) {
        loop {
            tokio::time::sleep(interval).await;
            if self.node.status().is_leader
                && let Err(error) = self.check_members().await
            {
                tracing::warn!(%error, "failed to check hash KV");
            }
        }
    }

    async fn check_members(&self) -> Result<(), String> {
        let before = self.newest_hash().await?;
        let answers = self.ask_hashes(before.hash_revision).await;
        self.node.read_index().await.map_err(|e| e.to_string())?;
        let after = self.newest_hash().await?;
        if let Some(id) = find_corrupt(self.node.member_id(), &before, &after, &answers) {
            self.raise(id).await;
        }
        let checked = answers.iter().filter(|(_, answer)| answer.is_ok()).count();
        tracing::info!(number_of_peers_checked = checked, "finished peer corruption check");
        Ok(())
    }

    /// Feature `CompactHashCheck`: members compact at the same revisions, and keep the hashes of what remained.
    pub(crate) async fn watch_compactions(self, interval: Duration) {
        let mut checked = 0;
        loop {
            tokio::time::sleep(interval).await;
            if self.node.status().is_leader {
                checked = self.check_compactions(checked).await;
            }
        }
    }

    /// From the newest hash back to the newest that all members have. Returns the newest revision that was checked.
    async fn check_compactions(&self, checked: i64) -> i64 {
        let hashes = self.node.store().compaction_hashes();
        for own in hashes.iter().rev().filter(|hash| hash.hash_revision > checked) {
            let own = hash_kv(own);
            let answers = self.ask_hashes(own.hash_revision).await;
            if answers.is_empty() {
                continue;
            }
            match compare_compactions(self.node.member_id(), &own, &answers) {
                Comparison::Equal => return own.hash_revision,
                Comparison::Incomplete => {}
                Comparison::Corrupt(ids) => {
                    for id in ids {
                        self.raise(id).await;
                    }
                    return checked;
                }
            }
        }
        checked
    }

    async fn raise(&self, id: MemberId) {
        tracing::error!(member = %id, alarm = "CORRUPT", "raising alarm: the data of a member differs");
        let alarm =
            AlarmRequest { action: AlarmAction::Activate as i32, member_id: id.0, alarm: AlarmType::Corrupt as i32 };
        let request = InternalRaftRequest { alarm: Some(alarm), ..Default::default() };
        if let Err(error) = self.node.propose(request).await {
            tracing::warn!(%error, "failed to raise the CORRUPT alarm");
        }
    }

    /// Not what a compaction left: that has another compaction revision than what the others compute.
    async fn newest_hash(&self) -> Result<HashKv, String> {
        let store = self.node.store().clone();
        let hash = tokio::task::spawn_blocking(move || store.newest_hash()).await;
        let hash = hash.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
        Ok(hash_kv(&hash))
    }

    async fn ask_hashes(&self, revision: i64) -> Vec<Answer> {
        let cluster = self.node.cluster();
        let others: Vec<_> = cluster.members().filter(|m| m.id != cluster.local).cloned().collect();
        let asked = others.iter().map(|member| async move {
            let mut last = Err(ControlError::Other("the member has no peer URL".into()));
            for url in &member.peer_urls {
                last = self.control.hash_kv(url, cluster.id, revision, self.timeout()).await;
                if last.is_ok() {
                    break;
                }
            }
            (member.id, last)
        });
        join_all(asked).await
    }
}

pub(crate) fn hash_kv(hash: &mvcc::HashKv) -> HashKv {
    HashKv {
        revision: hash.revision,
        hash: hash.hash,
        compact_revision: hash.compact_revision,
        hash_revision: hash.hash_revision,
    }
}

/// The first member found whose data cannot be right, judged by the leader's hashes before and after asking.
fn find_corrupt(leader: MemberId, before: &HashKv, after: &HashKv, answers: &[Answer]) -> Option<MemberId> {
    let same_place = after.hash_revision == before.hash_revision && after.compact_revision == before.compact_revision;
    if same_place && after.hash != before.hash {
        return Some(leader);
    }
    let is_wrong = |other: &HashKv| {
        other.revision > after.revision
            || other.compact_revision > after.compact_revision
            || (other.compact_revision == before.compact_revision && other.hash != before.hash)
    };
    let answered = answers.iter().filter_map(|(id, answer)| Some((*id, answer.as_ref().ok()?)));
    answered.filter(|(_, other)| is_wrong(other)).map(|(id, _)| id).next()
}

#[derive(Debug, PartialEq, Eq)]
enum Comparison {
    /// All members have this hash.
    Equal,
    /// Those that could be compared have, but not all could.
    Incomplete,
    /// These differ from a majority; member 0 if there is none, so that nobody knows who is right.
    Corrupt(Vec<MemberId>),
}

fn compare_compactions(leader: MemberId, own: &HashKv, answers: &[Answer]) -> Comparison {
    let comparable = |answer: &Result<HashKv, ControlError>| match answer {
        Ok(other) if other.compact_revision == own.compact_revision => Some(other.hash),
        _ => None,
    };
    let others = answers.iter().filter_map(|(id, answer)| Some((*id, comparable(answer)?)));
    let all: Vec<_> = std::iter::once((leader, own.hash)).chain(others).collect();
    if all.iter().all(|(_, hash)| *hash == own.hash) {
        return if all.len() == answers.len() + 1 { Comparison::Equal } else { Comparison::Incomplete };
    }
    let quorum = membership::quorum(answers.len() + 1);
    let count = |hash: u32| all.iter().filter(|(_, other)| *other == hash).count();
    match all.iter().map(|(_, hash)| *hash).find(|hash| count(*hash) >= quorum) {
        Some(right) => Comparison::Corrupt(all.iter().filter(|(_, h)| *h != right).map(|(id, _)| *id).collect()),
        None => Comparison::Corrupt(vec![MemberId(0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(hash: u32) -> HashKv {
        HashKv { revision: 10, hash, compact_revision: 5, hash_revision: 10 }
    }

    fn answer(id: u64, kv: HashKv) -> Answer {
        (MemberId(id), Ok(kv))
    }

    fn silent(id: u64) -> Answer {
        (MemberId(id), Err(ControlError::Timeout))
    }

    #[test]
    fn the_minority_is_wrong() {
        let leader = MemberId(1);
        let equal = [answer(2, hash(7)), answer(3, hash(7))];
        assert_eq!(compare_compactions(leader, &hash(7), &equal), Comparison::Equal);
        let part = [answer(2, hash(7)), silent(3)];
        assert_eq!(compare_compactions(leader, &hash(7), &part), Comparison::Incomplete);
        let one = [answer(2, hash(7)), answer(3, hash(8))];
        assert_eq!(compare_compactions(leader, &hash(7), &one), Comparison::Corrupt(vec![MemberId(3)]));
        let leader_is_wrong = [answer(2, hash(8)), answer(3, hash(8))];
        assert_eq!(compare_compactions(leader, &hash(7), &leader_is_wrong), Comparison::Corrupt(vec![leader]));
        let nobody_knows = [answer(2, hash(8)), silent(3)];
        assert_eq!(compare_compactions(leader, &hash(7), &nobody_knows), Comparison::Corrupt(vec![MemberId(0)]));
    }

    #[test]
    fn a_follower_is_never_ahead() {
        let leader = MemberId(1);
        let ahead = HashKv { revision: 12, ..hash(7) };
        assert_eq!(find_corrupt(leader, &hash(7), &hash(7), &[answer(2, ahead)]), Some(MemberId(2)));
        let later = HashKv { revision: 12, hash_revision: 12, ..hash(9) };
        assert_eq!(find_corrupt(leader, &hash(7), &later, &[answer(2, hash(7))]), None);
        assert_eq!(find_corrupt(leader, &hash(7), &hash(8), &[]), Some(leader));
        assert_eq!(find_corrupt(leader, &hash(7), &hash(7), &[answer(2, hash(6))]), Some(MemberId(2)));
        let other_compaction = HashKv { compact_revision: 4, ..hash(6) };
        assert_eq!(find_corrupt(leader, &hash(7), &hash(7), &[answer(2, other_compaction)]), None);
    }
}
