//! The client itself: connecting, endpoints, and settings per call.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::{
    ConnectOptions, Result, Watcher, call::Caller, keepalive::Keeper, login::Login, pool::Pool, required::Required,
};

/// A handle to a cluster; cheap to clone, all clones share their connections.
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
    /// A client of the given endpoints, each `host:port` or `http://host:port`.
    ///
    /// Connections are made when first used and again when lost, so this succeeds also while no server is up;
    /// calls then wait, as long as their timeout allows. Must be called within a tokio runtime.
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

    /// The same client with another time limit per call.
    pub fn with_timeout(&self, timeout: impl Into<Option<Duration>>) -> Client {
        let mut client = self.clone();
        client.caller.timeout = timeout.into();
        client
    }

    /// The same client, whose requests fail where a member has no leader instead of waiting there.
    pub fn require_leader(&self) -> Client {
        let mut client = self.clone();
        client.caller.require_leader = true;
        client
    }

    /// A client of one endpoint only, with the same settings: for calls that mean one member.
    pub fn only(&self, endpoint: &str) -> Result<Client> {
        let pool = Arc::new(Pool::new(&[endpoint.to_owned()], &self.caller.options)?);
        Ok(Client { caller: Caller { pool, ..self.caller.clone() }, shared: Arc::default() })
    }

    pub fn endpoints(&self) -> Vec<String> {
        self.caller.pool.endpoints()
    }

    pub fn set_endpoints(&self, endpoints: &[String]) -> Result<()> {
        self.caller.pool.set_endpoints(endpoints, &self.caller.options)
    }

    /// Takes over the client URLs of all started voters from the cluster's member list.
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
