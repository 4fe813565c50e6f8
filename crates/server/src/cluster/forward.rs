//! What only the leader can do, asked of it by the others.

use std::{
    future::Future,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use failpoint::failpoint;
use membership::{ChangeError, Cluster, Member, MemberId, ReconfigureError};
use node::ProposeError;
use peer::ControlError;
use proto::etcdserverpb::{LeaseTimeToLiveRequest, LeaseTimeToLiveResponse};
use tokio::time::{Instant, sleep, timeout_at};

use super::{Part, reconfigure::ReconfigureFailure};

/// Between two attempts, as in etcd.
const PAUSE: Duration = Duration::from_millis(50);

/// Why the leader did not answer, or what it answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaderError {
    #[error("etcdserver: no leader")]
    NoLeader,
    #[error("etcdserver: request timed out")]
    Timeout,
    #[error(transparent)]
    Here(#[from] ProposeError),
    #[error(transparent)]
    Reconfigure(#[from] ReconfigureFailure),
    #[error(transparent)]
    There(ControlError),
}

impl Part {
    /// Renews a lease, here or at the leader. `None` if it does not exist or has ended.
    pub(crate) async fn renew_lease(&self, id: i64) -> Result<Option<i64>, LeaderError> {
        let here = || async { self.node.renew_lease(id).await.map_err(LeaderError::from) };
        let there = |url: String, wait| async move { self.control.renew_lease(&url, id, wait).await.map(Some) };
        match self.at_leader(here, there).await {
            Err(LeaderError::There(ControlError::LeaseNotFound)) => Ok(None),
            other => other,
        }
    }

    /// What the leader knows of a lease. `None` if it does not exist.
    pub(crate) async fn lease_time_to_live(
        &self,
        request: LeaseTimeToLiveRequest,
    ) -> Result<Option<LeaseTimeToLiveResponse>, LeaderError> {
        let here = || async { self.lease_time_to_live_here(&request).await };
        let there =
            |url: String, wait| async move { self.control.lease_time_to_live(&url, request, wait).await.map(Some) };
        match self.at_leader(here, there).await {
            Err(LeaderError::There(ControlError::LeaseNotFound)) => Ok(None),
            other => other,
        }
    }

    /// The same, if this member leads.
    pub(crate) async fn lease_time_to_live_here(
        &self,
        request: &LeaseTimeToLiveRequest,
    ) -> Result<Option<LeaseTimeToLiveResponse>, LeaderError> {
        if !self.node.status().is_leader {
            return Err(ProposeError::NotLeader.into());
        }
        self.node.read_index().await.map_err(|_| LeaderError::Timeout)?;
        failpoint!("beforeLookupWhenLeaseTimeToLive");
        let found = self.node.lessor().lock().time_to_live(self.node.now(), request.id, request.keys);
        // Asked again: what a member that has just lost the leadership knows of a lease may be wrong.
        if !self.node.status().is_leader {
            return Err(ProposeError::NotLeader.into());
        }
        Ok(found.map(|found| LeaseTimeToLiveResponse {
            header: None,
            id: request.id,
            ttl: found.remaining,
            granted_ttl: found.granted,
            keys: found.keys,
        }))
    }

    /// Promotes a learner, here or at the leader. Returns the members.
    pub(crate) async fn promote_member(&self, id: MemberId) -> Result<Vec<Member>, LeaderError> {
        let members = |cluster: Cluster| cluster.members().cloned().collect();
        let attempts = &Promotion::of(self.node.cluster().member(id));
        let here = || async { Ok(members(self.promote_here(id).await?)) };
        let there = |url: String, wait| async move {
            self.control.promote(&url, id, None, wait).await.inspect_err(|error| attempts.handle_error(error))
        };
        match self.at_leader(here, there).await {
            Err(error) if attempts.is_done(&error) => {
                self.node.read_index().await.map_err(|_| LeaderError::Timeout)?;
                Ok(members(self.node.cluster()))
            }
            result => result,
        }
    }

    /// Does it here if this member leads, and else at the leader, until there is an answer or the time is up.
    async fn at_leader<T, H, L>(
        &self,
        here: impl Fn() -> H,
        there: impl Fn(String, Duration) -> L,
    ) -> Result<T, LeaderError>
    where
        H: Future<Output = Result<T, LeaderError>>,
        L: Future<Output = Result<T, ControlError>>,
    {
        let deadline = Instant::now() + self.timeout();
        loop {
            match here().await {
                Err(error) if is_not_leader(&error) => {}
                result => return result,
            }
            let leader = self.wait_leader(deadline).await?;
            for url in leader.peer_urls.iter().filter(|_| leader.id != self.node.member_id()) {
                match timeout_at(deadline, there(url.clone(), self.timeout())).await {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(error)) if is_final(&error) => return Err(LeaderError::There(error)),
                    // It may have stopped, or lead no longer: who leads then is asked.
                    Ok(Err(_)) => {}
                    Err(_) => return Err(LeaderError::Timeout),
                }
            }
            if Instant::now() >= deadline {
                return Err(LeaderError::Timeout);
            }
            sleep(PAUSE).await;
        }
    }

    async fn wait_leader(&self, deadline: Instant) -> Result<Member, LeaderError> {
        loop {
            let leader = MemberId(self.node.status().leader);
            let member = self.node.cluster().member(leader).cloned();
            if let Some(member) = member.filter(|member| !member.peer_urls.is_empty()) {
                return Ok(member);
            }
            if Instant::now() >= deadline {
                return Err(LeaderError::NoLeader);
            }
            sleep(PAUSE).await;
        }
    }
}

/// The attempts at a promotion. One whose answer was lost may have succeeded; the next one is then refused, because the
/// member is a learner no longer.
struct Promotion {
    was_learner: bool,
    answer_lost: AtomicBool,
}

impl Promotion {
    fn of(member: Option<&Member>) -> Promotion {
        Promotion { was_learner: member.is_some_and(|member| member.is_learner), answer_lost: AtomicBool::new(false) }
    }

    fn handle_error(&self, error: &ControlError) {
        if !is_final(error) {
            self.answer_lost.store(true, Relaxed);
        }
    }

    /// Whether this refusal shows that an earlier attempt succeeded.
    fn is_done(&self, error: &LeaderError) -> bool {
        let is_voter = match error {
            LeaderError::There(ControlError::NotLearner) => true,
            LeaderError::Reconfigure(failure) => failure.change_error() == Some(ChangeError::NotLearner),
            _ => false,
        };
        is_voter && self.was_learner && self.answer_lost.load(Relaxed)
    }
}

fn is_not_leader(error: &LeaderError) -> bool {
    matches!(
        error,
        LeaderError::Here(ProposeError::NotLeader)
            | LeaderError::Reconfigure(ReconfigureFailure::Check(ReconfigureError::NotLeader))
    )
}

/// Whether asking again would give the same.
fn is_final(error: &ControlError) -> bool {
    matches!(
        error,
        ControlError::LeaseNotFound
            | ControlError::MemberNotFound
            | ControlError::NotLearner
            | ControlError::LearnerNotReady
            | ControlError::LearnerFeatures(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_learner() -> [LeaderError; 2] {
        let here = ReconfigureFailure::Check(ReconfigureError::Change(ChangeError::NotLearner));
        [LeaderError::There(ControlError::NotLearner), LeaderError::Reconfigure(here)]
    }

    fn promotion(is_learner: bool, earlier: &[ControlError]) -> Promotion {
        let promotion = Promotion::of(Some(&Member { is_learner, ..Default::default() }));
        earlier.iter().for_each(|error| promotion.handle_error(error));
        promotion
    }

    #[test]
    fn a_promotion_whose_answer_was_lost_has_succeeded() {
        let lost = promotion(true, &[ControlError::Timeout]);
        assert!(not_learner().iter().all(|error| lost.is_done(error)));
        assert!(!lost.is_done(&LeaderError::There(ControlError::LearnerNotReady)));
        assert!(!lost.is_done(&LeaderError::Timeout));
    }

    #[test]
    fn a_voter_cannot_be_promoted() {
        let refused = [promotion(true, &[]), promotion(false, &[ControlError::Timeout])];
        assert!(not_learner().iter().all(|error| refused.iter().all(|promotion| !promotion.is_done(error))));
    }
}
