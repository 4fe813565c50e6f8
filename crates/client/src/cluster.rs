//! Members: list, add, remove, update, promote.

use proto::etcdserverpb::{
    MemberAddRequest, MemberAddResponse, MemberListRequest, MemberListResponse, MemberPromoteRequest,
    MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse, MemberUpdateRequest, MemberUpdateResponse,
    cluster_client::ClusterClient,
};

use crate::{Client, Result, call::rpc};

impl Client {
    /// Returns the members of the cluster. If `linearizable` is false the contacted member answers
    /// from its own state, even without a leader.
    pub async fn member_list(&self, linearizable: bool) -> Result<MemberListResponse> {
        rpc!(self.caller, Repeatable, ClusterClient::member_list, MemberListRequest { linearizable })
    }

    /// Adds a member with these peer URLs, as a non-voting learner if `learner` is set. Start its
    /// process afterwards.
    pub async fn member_add(&self, peer_urls: Vec<String>, learner: bool) -> Result<MemberAddResponse> {
        let request = MemberAddRequest { peer_ur_ls: peer_urls, is_learner: learner };
        rpc!(self.caller, Once, ClusterClient::member_add, request)
    }

    /// Removes the member with this id.
    pub async fn member_remove(&self, id: u64) -> Result<MemberRemoveResponse> {
        rpc!(self.caller, Once, ClusterClient::member_remove, MemberRemoveRequest { id })
    }

    /// Replaces the peer URLs of the member with this id.
    pub async fn member_update(&self, id: u64, peer_urls: Vec<String>) -> Result<MemberUpdateResponse> {
        let request = MemberUpdateRequest { id, peer_ur_ls: peer_urls };
        rpc!(self.caller, Once, ClusterClient::member_update, request)
    }

    /// Makes a learner a voting member. Fails with [`crate::Kind::LearnerNotReady`] while it lags
    /// behind the leader.
    pub async fn member_promote(&self, id: u64) -> Result<MemberPromoteResponse> {
        rpc!(self.caller, Once, ClusterClient::member_promote, MemberPromoteRequest { id })
    }
}
