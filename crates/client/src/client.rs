//! The client itself: connecting, endpoints, and settings per call.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::{
    ConnectOptions, Result, Watcher, call::Caller, keepalive::Keeper, login::Login, pool::Pool, required::Required,
};

/// A handle to a cluster. Cheap to clone: all clones share their connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) caller: Caller,
    shared: Arc<Shared>,
}

/// Background tasks, started when first needed. They hold no `Client`, so they end with the last one.
#[derive(Default)]
struct Shared {
    /// By `require_leader` and required features, which are said when a stream opens.
    watchers: Mutex<BTreeMap<(bool, Required), Watcher>>,
    keepers: Mutex<BTreeMap<Required, Keeper>>,
}

impl Client {
    /// Returns a client of the given endpoints, each `host:port` or `http://host:port`.
    ///
    /// Connections are made at the first use, and again after a failure. So this succeeds also
    /// while no server is running; calls then wait as long as their timeout allows. Must be called
    /// within a tokio runtime.
    pub async fn connect<E>(endpoints: E, options: ConnectOptions) -> Result<Client>
    where
        E: IntoIterator,
        E::Item: Into<String>,
    {
        let endpoints: Vec<String> = endpoints.into_iter().map(Into::into).collect();
        let pool = Arc::new(Pool::new(&endpoints, &options)?);
        let caller = Caller {
            pool,
            timeout: options.request_timeout,
            require_leader: false,
            required: Required::default(),
            login: Login::new(&options).map(Arc::new),
            token: Caller::given_token(&options)?,
            options: Arc::new(options),
        };
        Ok(Client { caller, shared: Arc::default() })
    }

    /// Returns a client that shares the connections and has another time limit per call. `None`
    /// waits without limit.
    pub fn with_timeout(&self, timeout: impl Into<Option<Duration>>) -> Client {
        let mut client = self.clone();
        client.caller.timeout = timeout.into();
        client
    }

    /// Returns a client that shares the connections and whose requests fail on a member without a
    /// leader, instead of waiting there.
    pub fn require_leader(&self) -> Client {
        let mut client = self.clone();
        client.caller.require_leader = true;
        client
    }

    /// Returns a client with the same settings of one endpoint only, for calls that address one
    /// member.
    pub fn only(&self, endpoint: &str) -> Result<Client> {
        let pool = Arc::new(Pool::new(&[endpoint.to_owned()], &self.caller.options)?);
        Ok(Client { caller: Caller { pool, ..self.caller.clone() }, shared: Arc::default() })
    }

    /// The endpoints that calls are distributed over, as they were given.
    pub fn endpoints(&self) -> Vec<String> {
        self.caller.pool.endpoints()
    }

    /// Replaces the endpoints of this client and all its clones. Fails if one of them is invalid;
    /// the earlier endpoints then stay.
    pub fn set_endpoints(&self, endpoints: &[String]) -> Result<()> {
        self.caller.pool.set_endpoints(endpoints, &self.caller.options)
    }

    /// Replaces the endpoints with the client URLs of all started voting members of the cluster.
    pub async fn sync_endpoints(&self) -> Result<()> {
        let list = self.member_list(true).await?;
        let voters = list.members.into_iter().filter(|member| !member.name.is_empty() && !member.is_learner);
        let endpoints: Vec<String> = voters.flat_map(|member| member.client_ur_ls).collect();
        self.set_endpoints(&endpoints)
    }

    /// The watcher that [`Client::watch`] uses.
    pub(crate) fn shared_watcher(&self) -> Watcher {
        let mut watchers = self.shared.watchers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let kind = (self.caller.require_leader, self.caller.required.clone());
        watchers.entry(kind).or_insert_with(|| Watcher::start(self.caller.clone())).clone()
    }

    pub(crate) fn keeper(&self) -> Keeper {
        let mut keepers = self.shared.keepers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let kind = self.caller.required.clone();
        keepers.entry(kind).or_insert_with(|| Keeper::start(self.caller.clone())).clone()
    }
}
