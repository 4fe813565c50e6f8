//! Lease: grant, revoke, keep alive, time to live, list.

use std::pin::Pin;

use ::auth::{self, Store, Who};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::HeaderValue;
use node::{Response as Applied, quota};
use proto::etcdserverpb::{
    InternalRaftRequest, LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseLeasesRequest, LeaseLeasesResponse, LeaseRevokeRequest, LeaseRevokeResponse, LeaseStatus,
    LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, lease_server::Lease,
};
use tonic::{Request, Response, Status, Streaming};

use super::{Context, mismatch};
use crate::{
    status,
    users::{self, Permit},
};

pub(crate) struct LeaseService(pub Context);

#[tonic::async_trait]
impl Lease for LeaseService {
    type LeaseKeepAliveStream = Pin<Box<dyn Stream<Item = Result<LeaseKeepAliveResponse, Status>> + Send>>;

    async fn lease_grant(&self, request: Request<LeaseGrantRequest>) -> Result<Response<LeaseGrantResponse>, Status> {
        let mut request = request.into_inner();
        if request.ttl > ::lease::TTL_MAX {
            return Err(status::lease_ttl_too_large());
        }
        self.0.check_quota(quota::LEASE_COST)?;
        self.0.require_login().await?;
        if request.id == 0 {
            request.id = self.0.node.next_lease_id();
        }
        let grant = InternalRaftRequest { lease_grant: Some(request), ..Default::default() };
        match self.0.propose(grant).await? {
            Applied::LeaseGrant(mut response) => {
                response.header = self.0.fill(response.header);
                Ok(Response::new(response))
            }
            other => Err(mismatch(&other)),
        }
    }

    async fn lease_revoke(
        &self,
        request: Request<LeaseRevokeRequest>,
    ) -> Result<Response<LeaseRevokeResponse>, Status> {
        self.0.require_login().await?;
        let revoke = InternalRaftRequest { lease_revoke: Some(request.into_inner()), ..Default::default() };
        match self.0.propose(revoke).await? {
            Applied::LeaseRevoke(mut response) => {
                response.header = self.0.fill(response.header);
                Ok(Response::new(response))
            }
            other => Err(mismatch(&other)),
        }
    }

    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<LeaseKeepAliveRequest>>,
    ) -> Result<Response<Self::LeaseKeepAliveStream>, Status> {
        let context = self.0.clone();
        // Users may come to be needed while the stream is open.
        let token = users::token_among(request.metadata().as_ref());
        let answers = request.into_inner().then(move |request| {
            let (context, token) = (context.clone(), token.clone());
            async move {
                let request = request.inspect_err(|e| context.metrics.grpc.receive_failed("lease-keepalive", e))?;
                context.permit_lease(token.as_ref(), request.id, Store::may_write).await?;
                keep_alive(&context, request.id).await
            }
        });
        Ok(Response::new(answers.boxed()))
    }

    async fn lease_time_to_live(
        &self,
        request: Request<LeaseTimeToLiveRequest>,
    ) -> Result<Response<LeaseTimeToLiveResponse>, Status> {
        let token = users::token_among(request.metadata().as_ref());
        let request = request.into_inner();
        self.0.require_login_with(token.as_ref()).await?;
        let permit =
            if request.keys { Some(self.0.permit_lease(token.as_ref(), request.id, may_read).await?) } else { None };
        let found = self.0.part.lease_time_to_live(request).await.map_err(|e| status::from_leader(&e))?;
        if let Some(permit) = permit {
            self.0.check_still(permit)?;
            // The leader may know keys of the lease that this member has not applied yet.
            let keys = found.as_ref().map_or(&[][..], |found| &found.keys[..]);
            self.0.permit_with(token.as_ref(), |users, who| may_keys(users, who, keys, may_read)).await?;
        }
        let header = Some(self.0.header());
        Ok(Response::new(match found {
            Some(found) => LeaseTimeToLiveResponse { header, ..found },
            None => LeaseTimeToLiveResponse { header, id: request.id, ttl: -1, ..Default::default() },
        }))
    }

    async fn lease_leases(&self, _: Request<LeaseLeasesRequest>) -> Result<Response<LeaseLeasesResponse>, Status> {
        self.0.require_login().await?;
        self.0.linearize().await?;
        let ids = self.0.node.lessor().lock().ids();
        self.0.permit_all_leases(&ids).await?;
        let leases = ids.into_iter().map(|id| LeaseStatus { id }).collect();
        Ok(Response::new(LeaseLeasesResponse { header: Some(self.0.header()), leases }))
    }
}

fn may_read(users: &Store, who: Who<'_>, key: &[u8]) -> Result<(), auth::Error> {
    users.may_read(who, key, b"")
}

/// Whether a user may do something with a key.
type May = fn(&Store, Who<'_>, &[u8]) -> Result<(), auth::Error>;

impl Context {
    /// For what is about a lease: all keys that hang on it count.
    async fn permit_lease(&self, token: Option<&HeaderValue>, id: i64, may: May) -> Result<Permit, Status> {
        self.require_login_with(token).await?;
        self.permit_with(token, |users, who| may_keys(users, who, &self.node.lessor().lock().keys(id), may)).await
    }

    async fn permit_all_leases(&self, ids: &[i64]) -> Result<(), Status> {
        self.require_login().await?;
        let keys = |id: &i64| self.node.lessor().lock().keys(*id);
        let judged = self.permit(|users, who| ids.iter().try_for_each(|id| may_keys(users, who, &keys(id), may_read)));
        self.check_still(judged.await?)
    }
}

fn may_keys(users: &Store, who: Who<'_>, keys: &[Bytes], may: May) -> Result<(), auth::Error> {
    if users.may_administer(who).is_ok() {
        return Ok(());
    }
    keys.iter().try_for_each(|key| may(users, who, key))
}

/// The header is made before the renewal, so that its revision is never one at which the lease was already gone.
async fn keep_alive(context: &Context, id: i64) -> Result<LeaseKeepAliveResponse, Status> {
    let header = Some(context.header());
    let ttl = context.part.renew_lease(id).await.map_err(|e| status::from_leader(&e))?;
    Ok(LeaseKeepAliveResponse { header, id, ttl: ttl.unwrap_or(0) })
}
