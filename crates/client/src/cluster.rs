//! Members: list, add, remove, update, promote.

use proto::etcdserverpb::{
    MemberAddRequest, MemberAddResponse, MemberListRequest, MemberListResponse, MemberPromoteRequest,
    MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse, MemberUpdateRequest, MemberUpdateResponse,
    cluster_client::ClusterClient,
};

use crate::{Client, Result, call::rpc};

impl Client {
    /// With `linearizable` false the member at hand answers from what it knows, also without a leader.
    pub async fn member_list(&self, linearizable: bool) -> Result<MemberListResponse> {
        rpc!(self.caller, Repeatable, ClusterClient::member_list, MemberListRequest { linearizable })
    }

    pub async fn member_add(&self, peer_urls: Vec<String>, learner: bool) -> Result<MemberAddResponse> {
        let request = MemberAddRequest { peer_ur_ls: peer_urls, is_learner: learner };
        rpc!(self.caller, Once, ClusterClient::member_add, request)
    }

    pub async fn member_remove(&self, id: u64) -> Result<MemberRemoveResponse> {
        rpc!(self.caller, Once, ClusterClient::member_remove, MemberRemoveRequest { id })
    }

    pub async fn member_update(&self, id: u64, peer_urls: Vec<String>) -> Result<MemberUpdateResponse> {
        let request = MemberUpdateRequest { id, peer_ur_ls: peer_urls };
        rpc!(self.caller, Once, ClusterClient::member_update, request)
    }

    pub async fn member_promote(&self, id: u64) -> Result<MemberPromoteResponse> {
        rpc!(self.caller, Once, ClusterClient::member_promote, MemberPromoteRequest { id })
    }
}
