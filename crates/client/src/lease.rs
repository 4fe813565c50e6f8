//! Leases: grant, revoke, look, list, renew.

use futures_util::stream;
use proto::etcdserverpb::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseLeasesRequest,
    LeaseLeasesResponse, LeaseRevokeRequest, LeaseRevokeResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse,
    lease_client::LeaseClient,
};

use crate::{
    Client, Error, KeepAlive, Kind, Result,
    call::{Policy, rpc},
};

impl Client {
    /// Creates a lease that lives for `ttl` seconds. With the id 0 the server chooses an id.
    ///
    /// As in etcd's Go client, a grant is repeated while no server is available. A grant whose
    /// response was lost leaves at worst an unused lease, which expires.
    pub async fn lease_grant(&self, ttl: i64, id: i64) -> Result<LeaseGrantResponse> {
        rpc!(self.caller, Repeatable, LeaseClient::lease_grant, LeaseGrantRequest { ttl, id })
    }

    /// Ends the lease and deletes its keys.
    pub async fn lease_revoke(&self, id: i64) -> Result<LeaseRevokeResponse> {
        rpc!(self.caller, Repeatable, LeaseClient::lease_revoke, LeaseRevokeRequest { id })
    }

    /// Returns the remaining seconds, -1 if the lease does not exist. With `keys` also its keys.
    pub async fn lease_time_to_live(&self, id: i64, keys: bool) -> Result<LeaseTimeToLiveResponse> {
        rpc!(self.caller, Repeatable, LeaseClient::lease_time_to_live, LeaseTimeToLiveRequest { id, keys })
    }

    /// Returns the ids of all leases.
    pub async fn leases(&self) -> Result<LeaseLeasesResponse> {
        rpc!(self.caller, Repeatable, LeaseClient::lease_leases, LeaseLeasesRequest {})
    }

    /// Renews a lease once. Fails with [`Kind::LeaseNotFound`] if it has expired.
    pub async fn lease_keep_alive_once(&self, id: i64) -> Result<LeaseKeepAliveResponse> {
        let message = LeaseKeepAliveRequest { id };
        let send = |channel, _, request: tonic::Request<LeaseKeepAliveRequest>| async move {
            let request = request.map(|message| stream::iter([message]));
            let (metadata, mut stream, extensions) =
                LeaseClient::new(channel).lease_keep_alive(request).await?.into_parts();
            Ok(tonic::Response::from_parts(metadata, stream.message().await?, extensions))
        };
        let response = self.caller.call(Policy::Repeatable, message, send).await?;
        response.filter(|response| response.ttl > 0).ok_or_else(|| Error::from_kind(Kind::LeaseNotFound))
    }

    /// Renews a lease until the handle is dropped. The handle is a stream of the server's answers; an error in
    /// it means that the lease is lost.
    ///
    /// ```no_run
    /// # async fn example(client: client::Client) -> client::Result<()> {
    /// use futures_util::StreamExt;
    /// let lease = client.lease_grant(10, 0).await?;
    /// let mut renewals = client.lease_keep_alive(lease.id);
    /// tokio::spawn(async move {
    ///     while let Some(Ok(renewal)) = renewals.next().await {
    ///         println!("{} s more", renewal.ttl);
    ///     }
    ///     println!("lost: stop working on what the lease guards");
    /// });
    /// # Ok(())
    /// # }
    /// ```
    pub fn lease_keep_alive(&self, id: i64) -> KeepAlive {
        self.keeper().add(id)
    }
}
