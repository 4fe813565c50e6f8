//! Cluster: the member list. Changes of it come with replication.

use membership::Member as ClusterMember;
use proto::etcdserverpb::{
    Member, MemberAddRequest, MemberAddResponse, MemberListRequest, MemberListResponse, MemberPromoteRequest,
    MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse, MemberUpdateRequest, MemberUpdateResponse,
    cluster_server::Cluster,
};
use tonic::{Request, Response, Status};

use super::Context;
use crate::status;

pub struct ClusterService(pub Context);

#[tonic::async_trait]
impl Cluster for ClusterService {
    async fn member_list(&self, request: Request<MemberListRequest>) -> Result<Response<MemberListResponse>, Status> {
        if request.into_inner().linearizable {
            self.0.linearize().await?;
        }
        let members = self.0.node.cluster().members().map(member).collect();
        // As in etcd, this header has no revision.
        Ok(Response::new(MemberListResponse { header: Some(self.0.header_at(0)), members }))
    }

    async fn member_add(&self, _: Request<MemberAddRequest>) -> Result<Response<MemberAddResponse>, Status> {
        Err(status::unsupported("adding members"))
    }

    async fn member_remove(&self, _: Request<MemberRemoveRequest>) -> Result<Response<MemberRemoveResponse>, Status> {
        Err(status::unsupported("removing members"))
    }

    async fn member_update(&self, _: Request<MemberUpdateRequest>) -> Result<Response<MemberUpdateResponse>, Status> {
        Err(status::unsupported("updating members"))
    }

    async fn member_promote(
        &self,
        _: Request<MemberPromoteRequest>,
    ) -> Result<Response<MemberPromoteResponse>, Status> {
        Err(status::unsupported("promoting members"))
    }
}

fn member(m: &ClusterMember) -> Member {
    Member {
        id: m.id.0,
        name: m.name.clone(),
        peer_ur_ls: m.peer_urls.clone(),
        client_ur_ls: m.client_urls.clone(),
        is_learner: m.is_learner,
    }
}
