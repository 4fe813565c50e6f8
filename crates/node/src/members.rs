//! Changes of the cluster, and what the other members send to this one.

use std::time::Duration;

use membership::{Change, Links, MemberId, longest_connected};
use prost::Message as _;
use proto::raftpb::{self, MessageType};
use tokio::sync::oneshot;

use crate::{
    error::{MoveError, ProposeError},
    node::Node,
    raft_loop::Input,
};

/// How often a move of the leadership is looked at.
const LOOK: Duration = Duration::from_millis(10);

impl Node {
    /// Proposes a change of the members and returns when this member has applied it.
    pub async fn change_members(&self, change: &Change) -> Result<(), ProposeError> {
        let id = self.proposer.ids.next();
        let data = change.encode(id).encode_to_vec().into();
        self.propose_and_wait(id, Input::ProposeConfChange { id, change: data }).await.map(|_| ())
    }

    /// A message from another member. Dropped if there are too many: it is sent again.
    pub fn receive(&self, message: raftpb::Message) {
        if self.shared.inbox.enter() {
            self.proposer.send(Input::Message(Box::new(message)));
        } else if message.r#type() != MessageType::MsgHeartbeat {
            tracing::warn!(from = format!("{:x}", message.from()), kind = ?message.r#type(), "dropped a raft message: overloaded");
        }
    }

    pub fn report_unreachable(&self, id: MemberId) {
        self.proposer.send(Input::Unreachable(id.0));
    }

    /// A database that [`crate::Network::send_snapshot`] was given has arrived, or has not.
    pub fn report_snapshot(&self, to: MemberId, sent: bool) {
        self.proposer.send(Input::SnapshotSent { to: to.0, sent });
    }

    pub fn is_removed(&self, id: MemberId) -> bool {
        self.cluster.read().is_removed(id)
    }

    /// Told by another member that this one is no longer in the cluster.
    pub fn note_removed(&self) {
        self.shared.fail(crate::FatalError::Removed);
        self.shared.close();
    }

    /// How far each member's log is known to match, if this member leads.
    pub async fn progress(&self) -> Vec<(MemberId, u64)> {
        let (reply, progress) = oneshot::channel();
        self.proposer.send(Input::Progress { reply });
        let progress = progress.await.unwrap_or_default();
        progress.into_iter().map(|(id, matched)| (MemberId(id), matched)).collect()
    }

    /// For how long each of the other members has answered without a break.
    pub fn links(&self) -> Links {
        let cluster = self.cluster.read();
        let (now, others) = (self.time.now(), cluster.members().filter(|member| member.id != cluster.local));
        let active = |id| Some((id, now.saturating_duration_since(self.network.active_since(id)?)));
        others.filter_map(|member| active(member.id)).collect()
    }

    /// After a start: a leader that is there would have been heard within two heartbeats of a connection, so most of the
    /// first election timeout need not be waited for.
    pub fn shorten_first_election(&self) {
        let ticks = (self.election_timeout.as_millis() / self.tick.as_millis().max(1)) as usize;
        self.proposer.send(Input::SkipTicks(ticks.saturating_sub(2)));
    }

    /// Hands the leadership to another member and waits until that one leads.
    pub async fn move_leader(&self, to: MemberId, timeout: Duration) -> Result<(), MoveError> {
        if self.shared.standing().leads_in().is_none() {
            return Err(MoveError::NotLeader);
        }
        if self.cluster.read().member(to).is_none_or(|member| member.is_learner) {
            return Err(MoveError::BadTransferee);
        }
        tracing::info!(
            local_member_id = %self.member_id(), transferee_member_id = %to, "leadership transfer starting"
        );
        self.proposer.send(Input::TransferLeader { to: to.0 });
        let transferred = async {
            while self.shared.leader() != to.0 {
                if !self.shared.is_running() {
                    return Err(MoveError::Stopped);
                }
                tokio::time::sleep(LOOK).await;
            }
            Ok(())
        };
        tokio::time::timeout(timeout, transferred).await.unwrap_or(Err(MoveError::Timeout))?;
        tracing::info!(
            local_member_id = %self.member_id(), transferee_member_id = %to, "leadership transfer finished"
        );
        Ok(())
    }

    /// Before this member stops: whoever leads next need not wait for an election timeout.
    pub async fn hand_over_leadership(&self) -> Result<(), MoveError> {
        let others: Vec<_> = {
            let cluster = self.cluster.read();
            cluster.voters().filter(|id| *id != cluster.local).collect()
        };
        if self.shared.standing().leads_in().is_none() || others.is_empty() {
            return Ok(());
        }
        let to = longest_connected(&self.links(), others).ok_or(MoveError::Unhealthy)?;
        // Raft gives a transfer up after an election timeout; waiting longer would only hold up the end.
        self.move_leader(to, self.election_timeout + self.tick).await
    }
}
