//! Cluster: the members, and changes of them.

use membership::{Cluster as Members, Member as ClusterMember, MemberId};
use proto::etcdserverpb::{
    Member, MemberAddRequest, MemberAddResponse, MemberListRequest, MemberListResponse, MemberPromoteRequest,
    MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse, MemberUpdateRequest, MemberUpdateResponse,
    ResponseHeader, cluster_server::Cluster,
};
use tonic::{Request, Response, Status};

use super::Context;
use crate::{config::Url, status};

pub(crate) struct ClusterService(pub Context);

#[tonic::async_trait]
impl Cluster for ClusterService {
    async fn member_list(&self, request: Request<MemberListRequest>) -> Result<Response<MemberListResponse>, Status> {
        self.0.require_login().await?;
        self.0.settle(request.into_inner().linearizable).await?;
        // A member that lagged behind may know only now that users are required.
        self.0.require_login().await?;
        let members = list(&self.0.node.cluster());
        Ok(Response::new(MemberListResponse { header: self.header(), members }))
    }

    async fn member_add(&self, request: Request<MemberAddRequest>) -> Result<Response<MemberAddResponse>, Status> {
        let request = request.into_inner();
        let urls = check_urls(&request.peer_ur_ls)?;
        self.0.require_admin().await?;
        let added = self.0.part.add_member(&urls, request.is_learner).await;
        let (added, cluster) = added.map_err(|e| status::from_reconfigure(&e))?;
        let header = self.header();
        Ok(Response::new(MemberAddResponse { header, member: Some(member(&added)), members: list(&cluster) }))
    }

    async fn member_remove(
        &self,
        request: Request<MemberRemoveRequest>,
    ) -> Result<Response<MemberRemoveResponse>, Status> {
        self.0.require_admin().await?;
        let removed = self.0.part.remove_member(MemberId(request.into_inner().id)).await;
        let cluster = removed.map_err(|e| status::from_reconfigure(&e))?;
        Ok(Response::new(MemberRemoveResponse { header: self.header(), members: list(&cluster) }))
    }

    async fn member_update(
        &self,
        request: Request<MemberUpdateRequest>,
    ) -> Result<Response<MemberUpdateResponse>, Status> {
        let request = request.into_inner();
        let urls = check_urls(&request.peer_ur_ls)?;
        self.0.require_admin().await?;
        let updated = self.0.part.update_member(MemberId(request.id), urls).await;
        let cluster = updated.map_err(|e| status::from_reconfigure(&e))?;
        Ok(Response::new(MemberUpdateResponse { header: self.header(), members: list(&cluster) }))
    }

    async fn member_promote(
        &self,
        request: Request<MemberPromoteRequest>,
    ) -> Result<Response<MemberPromoteResponse>, Status> {
        self.0.require_admin().await?;
        let promoted = self.0.part.promote_member(MemberId(request.into_inner().id)).await;
        let members = promoted.map_err(|e| status::from_leader(&e))?;
        let members = members.iter().map(member).collect();
        Ok(Response::new(MemberPromoteResponse { header: self.header(), members }))
    }
}

impl ClusterService {
    /// As in etcd, these headers have no revision.
    fn header(&self) -> Option<ResponseHeader> {
        Some(self.0.header_at(0))
    }
}

/// A member that nobody could reach would cost the cluster a vote. etcd takes any text in an update; that harms.
fn check_urls(urls: &[String]) -> Result<Vec<String>, Status> {
    if urls.is_empty() {
        return Err(status::member_bad_urls());
    }
    urls.iter().map(|url| Url::parse(url).map(|url| url.to_string()).map_err(|_| status::member_bad_urls())).collect()
}

fn list(cluster: &Members) -> Vec<Member> {
    cluster.members().map(member).collect()
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
