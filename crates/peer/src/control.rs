//! The control requests of [`Member`](crate::Member), asked of other members.
//!
//! Functions that take several URLs use the first that answers.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, header};
use http_body_util::Full;
use membership::{ClusterId, Member, MemberId};
use proto::{
    etcdserverpb::{LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse},
    leasepb::{LeaseInternalRequest, LeaseInternalResponse},
};

use crate::{
    client::{Answer, Client},
    header::{CLUSTER_ID, LOCKGATE_VERSION, insert, parse_id, text},
    json::{HashKvJson, HashKvRequest, MemberJson},
    member::{ControlError, HashKv, Versions},
    shared::address,
    url::PeerUrl,
};

const SMALL_BYTES_MAX: usize = 64 << 10;
const MEMBERS_BYTES_MAX: usize = 4 << 20;
/// A lease may have many keys.
const LEASE_BYTES_MAX: usize = 100 << 20;

/// Asks other members. Needs no transport, so that a member can ask before it is one.
pub struct Control {
    client: Client,
    lockgate_version: String,
}

/// What a member knows of its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCluster {
    pub id: ClusterId,
    pub members: Vec<Member>,
    /// The answering member is one of ours.
    pub lockgate: bool,
}

impl Control {
    pub fn new(lockgate_version: &str, local_address: Option<IpAddr>, dial_timeout: Duration) -> Control {
        let client = Client::new(local_address, dial_timeout, Duration::from_secs(5));
        Control { client, lockgate_version: lockgate_version.into() }
    }

    /// The members, from the first URL that tells. etcd waits 10 s for each.
    pub async fn fetch_members<S: AsRef<str>>(
        &self,
        urls: &[S],
        timeout: Duration,
    ) -> Result<RemoteCluster, ControlError> {
        for url in urls {
            match self.fetch_members_from(url.as_ref(), timeout).await {
                Ok(cluster) if cluster.members.is_empty() => {
                    return Err(other("failed to get raft cluster member(s) from the given URLs"));
                }
                Ok(cluster) => return Ok(cluster),
                Err(error) => {
                    tracing::warn!(address = url.as_ref(), %error, "failed to get cluster response");
                }
            }
        }
        // Why is in the log, once for each URL; this is what etcd says at the end.
        Err(other("could not retrieve cluster information from the given URLs"))
    }

    async fn fetch_members_from(&self, url: &str, timeout: Duration) -> Result<RemoteCluster, ControlError> {
        let answer = self.get(url, "/members", MEMBERS_BYTES_MAX, timeout).await?;
        ok(&answer, "get members")?;
        let members: Vec<MemberJson> = json(url, &answer)?;
        let id = text(&answer.headers, &CLUSTER_ID);
        let id =
            parse_id(id).ok_or_else(|| other(format!("{url} gave {id:?} as its cluster ID; hex digits are right")))?;
        let lockgate = answer.headers.contains_key(LOCKGATE_VERSION);
        Ok(RemoteCluster { id: ClusterId(id), members: members.into_iter().map(Member::from).collect(), lockgate })
    }

    /// The versions of the member with these URLs.
    pub async fn fetch_version<S: AsRef<str>>(&self, urls: &[S], timeout: Duration) -> Result<Versions, ControlError> {
        let mut last = none();
        for url in urls {
            let url = url.as_ref();
            let answer = self.get(url, "/version", SMALL_BYTES_MAX, timeout).await;
            match answer.and_then(|answer| ok(&answer, "get version").and_then(|()| json(url, &answer))) {
                Ok(versions) => return Ok(versions),
                Err(error) => {
                    tracing::warn!(address = url, %error, "failed to reach the peer URL");
                    last = error;
                }
            }
        }
        Err(last)
    }

    /// Whether the cluster of the member with these URLs is being downgraded.
    pub async fn downgrade_enabled<S: AsRef<str>>(&self, urls: &[S], timeout: Duration) -> Result<bool, ControlError> {
        let mut last = none();
        for url in urls {
            let url = url.as_ref();
            let answer = self.get(url, "/downgrade/enabled", SMALL_BYTES_MAX, timeout).await;
            match answer.and_then(|answer| parse_bool(url, &answer)) {
                Ok(enabled) => return Ok(enabled),
                Err(error) => {
                    tracing::warn!(address = url, %error, "failed to reach the peer URL");
                    last = error;
                }
            }
        }
        Err(last)
    }

    /// Has the leader at `url` promote a learner. `token` is the client's.
    pub async fn promote(
        &self,
        url: &str,
        id: MemberId,
        token: Option<&str>,
        timeout: Duration,
    ) -> Result<Vec<Member>, ControlError> {
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            insert(&mut headers, header::AUTHORIZATION, token);
        }
        let path = format!("/members/promote/{}", id.0);
        let answer = self.request(Method::POST, url, &path, headers, Bytes::new(), MEMBERS_BYTES_MAX, timeout).await?;
        match answer.status.as_u16() {
            200 => {
                let members: Vec<MemberJson> = json(url, &answer)?;
                Ok(members.into_iter().map(Member::from).collect())
            }
            404 => Err(ControlError::MemberNotFound),
            408 => Err(ControlError::Timeout),
            412 => Err(promote_refused(&answer)),
            _ => Err(unknown(&answer, "member promote")),
        }
    }

    /// The hash of the member at `url`, which refuses members of clusters other than `cluster`.
    pub async fn hash_kv(
        &self,
        url: &str,
        cluster: ClusterId,
        revision: i64,
        timeout: Duration,
    ) -> Result<HashKv, ControlError> {
        let body = serde_json::to_vec(&HashKvRequest { revision }).map_err(other)?;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        insert(&mut headers, CLUSTER_ID, &cluster.to_string());
        let path = "/members/hashkv";
        let answer = self.request(Method::GET, url, path, headers, body.into(), SMALL_BYTES_MAX, timeout).await?;
        match answer.status.as_u16() {
            200 => json::<HashKvJson>(url, &answer).map(HashKv::from),
            400 => Err(one_of(&answer, [ControlError::Compacted, ControlError::FutureRevision], "hashkv")),
            412 => Err(one_of(&answer, [ControlError::ClusterIdMismatch], "hashkv")),
            _ => Err(unknown(&answer, "hashkv")),
        }
    }

    /// Has the primary at `url` renew a lease; its TTL.
    pub async fn renew_lease(&self, url: &str, id: i64, timeout: Duration) -> Result<i64, ControlError> {
        let request = LeaseKeepAliveRequest { id };
        let answer: LeaseKeepAliveResponse = self.lease(url, "/leases", &request, timeout).await?;
        if answer.id == id { Ok(answer.ttl) } else { Err(other("lease: renew id mismatch")) }
    }

    pub async fn lease_time_to_live(
        &self,
        url: &str,
        request: LeaseTimeToLiveRequest,
        timeout: Duration,
    ) -> Result<LeaseTimeToLiveResponse, ControlError> {
        let id = request.id;
        let request = LeaseInternalRequest { lease_time_to_live_request: Some(request) };
        let answer: LeaseInternalResponse = self.lease(url, "/leases/internal", &request, timeout).await?;
        match answer.lease_time_to_live_response {
            Some(response) if response.id == id => Ok(response),
            _ => Err(other("lease: TTL id mismatch")),
        }
    }

    async fn lease<T: prost::Message + Default>(
        &self,
        url: &str,
        path: &str,
        request: &impl prost::Message,
        timeout: Duration,
    ) -> Result<T, ControlError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/protobuf"));
        let body = request.encode_to_vec().into();
        let answer = self.request(Method::POST, url, path, headers, body, LEASE_BYTES_MAX, timeout).await?;
        match answer.status.as_u16() {
            200 => T::decode(answer.body).map_err(|error| other(format!("lease: {error}"))),
            404 => Err(ControlError::LeaseNotFound),
            408 => Err(ControlError::LeaseTimeout),
            _ => Err(one_of(&answer, [ControlError::NotPrimary], "lease")),
        }
    }

    async fn get(&self, url: &str, path: &str, max: usize, timeout: Duration) -> Result<Answer, ControlError> {
        self.request(Method::GET, url, path, HeaderMap::new(), Bytes::new(), max, timeout).await
    }

    #[expect(clippy::too_many_arguments, reason = "a request has as many parts")]
    async fn request(
        &self,
        method: Method,
        url: &str,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
        answer_bytes_max: usize,
        timeout: Duration,
    ) -> Result<Answer, ControlError> {
        let parsed: PeerUrl = url.parse().map_err(other)?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        insert(request.headers_mut(), LOCKGATE_VERSION, &self.lockgate_version);
        address(&mut request, &parsed, path);
        let answer = self.client.request(&parsed, request, answer_bytes_max, timeout).await;
        answer.map_err(|error| ControlError::Unreachable { url: format!("{url}{path}"), reason: chain(&error) })
    }
}

/// An error and all its causes in a line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

fn none() -> ControlError {
    other("could not retrieve cluster information from the given URLs")
}

fn other(error: impl ToString) -> ControlError {
    ControlError::Other(error.to_string())
}

fn unknown(answer: &Answer, what: &str) -> ControlError {
    other(format!("{what}: unknown error({})", answer.text().chars().take(1024).collect::<String>()))
}

fn ok(answer: &Answer, what: &str) -> Result<(), ControlError> {
    if answer.status.is_success() { Ok(()) } else { Err(unknown(answer, what)) }
}

/// The error whose text the answer holds.
/// Only members of ours know of cluster features; their refusal is passed on word for word.
fn promote_refused(answer: &Answer) -> ControlError {
    let text = answer.text();
    if text.contains("cluster feature") {
        return ControlError::LearnerFeatures(text.trim_end().to_owned());
    }
    one_of(answer, [ControlError::LearnerNotReady, ControlError::NotLearner], "member promote")
}

fn one_of<const N: usize>(answer: &Answer, errors: [ControlError; N], what: &str) -> ControlError {
    let text = answer.text();
    errors.into_iter().find(|error| text.contains(&error.to_string())).unwrap_or_else(|| unknown(answer, what))
}

fn json<T: serde::de::DeserializeOwned>(url: &str, answer: &Answer) -> Result<T, ControlError> {
    serde_json::from_slice(&answer.body).map_err(|error| other(format!("failed to read the answer of {url}: {error}")))
}

fn parse_bool(url: &str, answer: &Answer) -> Result<bool, ControlError> {
    ok(answer, "downgrade enabled")?;
    match answer.text().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        found => Err(other(format!(
            "{url} answered {:?}; true or false is right",
            found.chars().take(64).collect::<String>()
        ))),
    }
}
