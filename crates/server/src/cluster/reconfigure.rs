//! Changes of the members, as clients ask for them: checked here, decided by the log.

use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

use membership::{Change, ChangeError, Cluster, Member, MemberId, ReconfigureError};
use node::ProposeError;

use super::Part;

/// Why the members stay as they are.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconfigureFailure {
    #[error(transparent)]
    Check(#[from] ReconfigureError),
    #[error(transparent)]
    Propose(#[from] ProposeError),
}

impl ReconfigureFailure {
    /// The reason as the log's decision would name it, whoever found it.
    pub(crate) fn change_error(&self) -> Option<ChangeError> {
        match self {
            ReconfigureFailure::Check(ReconfigureError::Change(error)) => Some(*error),
            ReconfigureFailure::Propose(ProposeError::Apply(node::ApplyError::Membership(error))) => Some(*error),
            _ => None,
        }
    }
}

impl Part {
    /// Adds a member that will come with these URLs.
    pub(crate) async fn add_member(
        &self,
        peer_urls: &[String],
        is_learner: bool,
    ) -> Result<(Member, Cluster), ReconfigureFailure> {
        let cluster = self.node.cluster();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let member = cluster.new_member(peer_urls, is_learner, now);
        if self.options.strict_reconfig {
            cluster.may_add(is_learner, &self.node.links()).inspect_err(|e| reject("add", member.id, e))?;
        }
        let change = Change::Add { member: member.clone(), as_learner: is_learner };
        Ok((member, self.change(&change).await?))
    }

    pub(crate) async fn remove_member(&self, id: MemberId) -> Result<Cluster, ReconfigureFailure> {
        let cluster = self.node.cluster();
        if self.options.strict_reconfig {
            cluster.may_remove(id, &self.node.links()).inspect_err(|e| reject("remove", id, e))?;
        }
        self.change(&Change::Remove(id)).await
    }

    pub(crate) async fn update_member(
        &self,
        id: MemberId,
        peer_urls: Vec<String>,
    ) -> Result<Cluster, ReconfigureFailure> {
        self.change(&Change::Update { id, peer_urls }).await
    }

    /// Makes a learner a voter. Only the leader knows how far the learner is.
    pub(crate) async fn promote_here(&self, id: MemberId) -> Result<Cluster, ReconfigureFailure> {
        self.node.read_index().await.map_err(|_| ProposeError::Timeout)?;
        let matched: BTreeMap<_, _> = self.node.progress().await.into_iter().collect();
        let matched = Some(&matched).filter(|matched| !matched.is_empty());
        let cluster = self.node.cluster();
        let check = cluster.may_promote(id, self.options.strict_reconfig, cluster.local, matched);
        check.inspect_err(|e| reject("promote", id, e))?;
        self.change(&Change::Promote(id)).await
    }

    async fn change(&self, change: &Change) -> Result<Cluster, ReconfigureFailure> {
        self.node.change_members(change).await?;
        Ok(self.node.cluster())
    }
}

fn reject(what: &'static str, id: MemberId, error: &ReconfigureError) {
    if *error != ReconfigureError::NotLeader {
        tracing::warn!(member = %id, %error, "rejecting member {what} request");
    }
}
