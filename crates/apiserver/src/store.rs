//! Objects in any etcd v3 API: keys as Kubernetes lays them out, values as bytes, revisions as versions.
//!
//! Invariant: every write is one transaction that compares the revision the writer has seen, so none is lost or overwritten
//! unseen, however many servers share the store.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use client::{
    Client, Code, Compare, ConnectOptions, Delete, Error, Get, Kind, Op, Put, Txn, User, Watch, WatchStream, Watcher,
};
use client::{
    mvccpb::KeyValue,
    pb::{ResponseHeader, response_op::Response},
};
use futures_util::{StreamExt, stream::BoxStream};

use crate::{
    past::{Known, Past},
    shared::{Shared, Told},
    status::{Result, Status},
};

const ROOT: &str = "/registry";
/// Longer than an election, so that a change of leader is a pause and not an error.
const CALL_SECONDS_MAX: u64 = 10;

#[derive(Clone)]
pub(crate) struct Store {
    client: Client,
    watcher: Watcher,
    shared: Shared,
    past: Past,
}

/// A stored object as it lies there.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub value: Bytes,
    pub revision: i64,
}

/// Part of a range, as of one revision.
pub(crate) struct Page {
    pub entries: Vec<Entry>,
    pub revision: i64,
    /// Keys from the page's start to the range's end, so what is left is this less the entries.
    pub count: i64,
    pub more: bool,
}

/// One key at one revision; 0 stands for "not there".
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub key: String,
    pub revision: i64,
}

/// What a write relies on beside the object itself.
#[derive(Clone, Debug)]
pub(crate) enum Guard {
    /// A key is still as it was seen.
    Same(Seen),
    /// No key with this prefix was written after that revision. Keys that were deleted do not count.
    NothingAfter { prefix: String, revision: i64 },
}

impl Guard {
    fn key(&self) -> &str {
        match self {
            Guard::Same(seen) => &seen.key,
            Guard::NothingAfter { prefix, .. } => prefix,
        }
    }

    fn compare(&self) -> Compare {
        match self {
            Guard::Same(seen) => Compare::mod_revision(seen.key.clone()).eq(seen.revision),
            Guard::NothingAfter { prefix, revision } => {
                let end = client::prefix_end(prefix.as_bytes());
                Compare::mod_revision(prefix.clone()).range_end(end).lt(revision + 1)
            }
        }
    }
}

pub(crate) enum Change<'a> {
    Put(&'a [u8]),
    Delete,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Written, at this revision.
    Done(i64),
    /// The object is not what the writer has seen.
    Moved,
    /// Something else the write relies on is not what the writer has seen.
    GuardMoved,
}

impl Store {
    pub(crate) async fn connect(endpoints: Vec<String>, user: Option<User>) -> Result<Store, Error> {
        endpoints.iter().try_for_each(|endpoint| check_port(endpoint))?;
        let mut options =
            ConnectOptions::new().request_timeout(Duration::from_secs(CALL_SECONDS_MAX)).send_bytes_max(8 << 20);
        if let Some(user) = user {
            options = options.user(user);
        }
        let client = Client::connect(endpoints, options).await?;
        let watcher = client.require_leader().watcher();
        Ok(Store { client, watcher, shared: Shared::default(), past: Past::default() })
    }

    pub(crate) async fn get(&self, key: &str) -> Result<Option<Entry>> {
        let known = self.past.known();
        let response = self.client.get(Get::key(key.to_owned())).await.map_err(|error| read_failed("get", error))?;
        self.saw(known, response.header.as_ref());
        Ok(response.kvs.into_iter().next().map(entry))
    }

    /// Keys that begin with `prefix`, from `start` on; `revision` 0 means now and `limit` 0 all of them.
    pub(crate) async fn list(&self, prefix: &str, start: Option<&str>, limit: i64, revision: i64) -> Result<Page> {
        let end = client::prefix_end(prefix.as_bytes());
        let start = start.unwrap_or(prefix).to_owned();
        self.page(Get::range(start, end).limit(limit).revision(revision), revision).await
    }

    /// How many keys begin with `prefix`.
    pub(crate) async fn count(&self, prefix: &str) -> Result<i64> {
        let get = Get::range(prefix.to_owned(), client::prefix_end(prefix.as_bytes())).count_only();
        self.page(get, 0).await.map(|page| page.count)
    }

    /// One key as a page, for lists that can have one object only.
    pub(crate) async fn one(&self, key: &str, revision: i64) -> Result<Page> {
        let mut end = key.as_bytes().to_vec();
        end.push(0);
        let get = Get::range(key.to_owned(), end).revision(revision);
        self.page(get, revision).await
    }

    async fn page(&self, get: Get, revision: i64) -> Result<Page> {
        let known = self.past.known();
        let response = self.client.get(get).await.map_err(|error| read_failed("list", error))?;
        self.saw(known, response.header.as_ref());
        let revision =
            if revision > 0 { revision } else { response.header.as_ref().map_or(0, |header| header.revision) };
        let entries = response.kvs.into_iter().map(entry).collect();
        Ok(Page { entries, revision, count: response.count, more: response.more })
    }

    /// Whether the store answers within a time, or why not.
    pub(crate) async fn reached_in(&self, wait: Duration) -> std::result::Result<(), String> {
        match tokio::time::timeout(wait, self.revision()).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(status)) => Err(status.message.clone()),
            Err(_) => Err("context deadline exceeded".to_owned()),
        }
    }

    /// The newest revision, asked of the leader.
    pub(crate) async fn revision(&self) -> Result<i64> {
        let known = self.past.known();
        let response = self.client.get(Get::key(ROOT).count_only()).await.map_err(|error| read_failed("get", error))?;
        self.saw(known, response.header.as_ref());
        Ok(response.header.map_or(0, |header| header.revision))
    }

    /// Writes if the object, and all that the write relies on, are still as they were seen.
    pub(crate) async fn write(&self, seen: &Seen, guards: &[Guard], change: Change<'_>) -> Result<Outcome> {
        let op: Op = match change {
            Change::Put(value) => Put::new(seen.key.clone(), value.to_vec()).into(),
            Change::Delete => Delete::key(seen.key.clone()).into(),
        };
        let own = Guard::Same(seen.clone());
        let conditions: Vec<Compare> = std::iter::once(&own).chain(guards).map(Guard::compare).collect();
        let look = Get::key(seen.key.clone()).keys_only();
        let txn = Txn::new().when(conditions).and_then([op]).or_else([look.into()]);
        let known = self.past.known();
        let response = self.client.txn(txn).await.map_err(write_failed)?;
        self.saw(known, response.header.as_ref());
        if response.succeeded {
            return Ok(Outcome::Done(response.header.map_or(0, |header| header.revision)));
        }
        let found = response.responses.into_iter().next().and_then(|response| response.response);
        let now = match found {
            Some(Response::ResponseRange(range)) => range.kvs.first().map_or(0, |kv| kv.mod_revision),
            _ => 0,
        };
        Ok(if now == seen.revision { Outcome::GuardMoved } else { Outcome::Moved })
    }

    /// Whether all of these are still as they were seen, at one moment: for a write of which nothing is left to write.
    pub(crate) async fn still(&self, guards: &[Guard]) -> Result<bool> {
        let response = self.client.txn(look(guards)).await.map_err(|error| read_failed("get", error))?;
        Ok(response.succeeded)
    }

    /// What happens to keys with `prefix` from `revision` on, with what was there before.
    pub(crate) fn watch(&self, prefix: &str, revision: i64) -> WatchStream {
        self.watcher.watch(Watch::prefix(prefix.to_owned()).start_revision(revision).prev_kv())
    }

    /// The same, with others who watch the prefix where they are as far.
    pub(crate) fn follow(&self, prefix: &str, revision: i64) -> BoxStream<'static, Told> {
        match self.shared.join(prefix, revision, || self.watch(prefix, revision)) {
            Some(member) => member.boxed(),
            None => self.follow_alone(prefix, revision),
        }
    }

    /// The same, for those who are behind: nobody else has to wait for what they are told.
    pub(crate) fn follow_alone(&self, prefix: &str, revision: i64) -> BoxStream<'static, Told> {
        self.watch(prefix, revision).map(|told| told.map(Arc::new).map_err(Box::new)).boxed()
    }

    /// Asks that all watches are told how far they have come.
    pub(crate) fn request_progress(&self) {
        self.watcher.request_progress();
    }

    /// Tells when what was known of the store is void.
    pub(crate) fn losses(&self) -> tokio::sync::watch::Receiver<u64> {
        self.past.losses()
    }

    fn saw(&self, known: Known, answer: Option<&ResponseHeader>) {
        if self.past.saw(known, answer) {
            self.shared.part();
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

/// An endpoint without a port would be waited for in vain.
fn check_port(endpoint: &str) -> Result<(), Error> {
    let address = endpoint.split_once("://").map_or(endpoint, |(_, address)| address);
    let address = address.split('/').next().unwrap_or_default();
    let port = address.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    // What else is wrong is told by those who dial.
    if address.is_empty() || matches!(port, Some(Ok(1..))) {
        return Ok(());
    }
    let reason = "it names no port between 1 and 65535; use host:port or http://host:port".to_owned();
    Err(Error::BadEndpoint { endpoint: endpoint.to_owned(), reason })
}

/// Compares, and reads one key: a transaction without a linearizable read is answered by any member from what it has, and a member
/// that has just come back can be far behind.
fn look(guards: &[Guard]) -> Txn {
    let read = || guards.first().map(|guard| Op::from(Get::key(guard.key().to_owned()).count_only()));
    Txn::new().when(guards.iter().map(Guard::compare)).and_then(read()).or_else(read())
}

/// `/registry/configmaps/`, `/registry/example.com/crontabs/`: the group is named where it has a dot, as Kubernetes does for
/// custom resources; its own groups lie under the resource alone.
pub(crate) fn prefix(group: &str, plural: &str) -> String {
    match group {
        "" | "coordination.k8s.io" | "admissionregistration.k8s.io" => format!("{ROOT}/{plural}/"),
        group => format!("{ROOT}/{group}/{plural}/"),
    }
}

pub(crate) fn entry(kv: KeyValue) -> Entry {
    let key = String::from_utf8_lossy(&kv.key).into_owned();
    Entry { key, value: kv.value, revision: kv.mod_revision }
}

fn read_failed(operation: &str, error: Error) -> Box<Status> {
    match error.kind() {
        Some(Kind::Compacted) => Status::expired("The resourceVersion for the provided list is too old."),
        Some(Kind::FutureRevision) => Status::timeout("Too large resource version"),
        _ => Status::server_timeout(operation, error),
    }
}

fn write_failed(error: Error) -> Box<Status> {
    match (error.kind(), &error) {
        (Some(Kind::RequestTooLarge), _) => Status::too_large("the object is larger than the store takes"),
        (Some(Kind::NoSpace), _) => Status::internal(error),
        // So large that the store did not even read it.
        (None, Error::Etcd { code: Code::ResourceExhausted, .. }) => {
            Status::too_large("the object is larger than the store takes")
        }
        // Sent and not answered: whether it was done is not known.
        (_, Error::Timeout { .. } | Error::Transport { sent: true, .. }) => Status::timeout(error),
        _ => Status::server_timeout("write", error),
    }
}

#[cfg(test)]
mod tests {
    use client::pb::{RequestOp, request_op::Request};
    use test_case::test_case;

    use super::*;

    #[test_case("", "configmaps" => "/registry/configmaps/")]
    #[test_case("coordination.k8s.io", "leases" => "/registry/leases/")]
    #[test_case("admissionregistration.k8s.io", "validatingadmissionpolicies" => "/registry/validatingadmissionpolicies/")]
    #[test_case("example.com", "crontabs" => "/registry/example.com/crontabs/")]
    #[test_case("apiextensions.k8s.io", "customresourcedefinitions" => "/registry/apiextensions.k8s.io/customresourcedefinitions/")]
    fn keys_are_where_kubernetes_puts_them(group: &str, plural: &str) -> String {
        prefix(group, plural)
    }

    #[test_case("127.0.0.1:2379" => true)]
    #[test_case("http://[::1]:2379/" => true)]
    #[test_case("127.0.0.1" => false)]
    #[test_case("[::1]" => false)]
    #[test_case("http://store" => false)]
    #[test_case("127.0.0.1:99999" => false)]
    #[test_case("store:0" => false)]
    fn endpoints_have_ports(endpoint: &str) -> bool {
        check_port(endpoint).is_ok()
    }

    /// Found by flips while a leader was killed: compares alone were answered by a member that was behind.
    #[test]
    fn a_look_waits_for_what_the_leader_has() {
        let seen = [Guard::Same(Seen { key: "/registry/a".to_owned(), revision: 7 })];
        let Op::Txn(request) = Op::from(look(&seen)) else { panic!("a transaction") };
        assert_eq!(request.compare.len(), 1);
        for branch in [&request.success, &request.failure] {
            let [RequestOp { request: Some(Request::RequestRange(range)) }] = &branch[..] else { panic!("{branch:?}") };
            assert!(!range.serializable);
        }
    }
}
