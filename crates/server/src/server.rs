//! A member from its configuration: start, serve, stop.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use node::{Life, Node, StartError};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    auto_compaction,
    cluster::begin::BeginError,
    config::{AuthToken, Config, ConfigError, MetricsLevel, Url},
    features::{FeatureError, Features},
    front::Front,
    health::HealthOf,
    http,
    listen::{
        Drain, ListenError, Serving,
        listeners::{self, Listeners},
        serve,
    },
    member::Member,
    metrics::Metrics,
    ports_file::{PortsFile, PortsFileError},
    routes::Routes,
    services::{Context, Limits},
    users::{
        Tokens,
        jwt::{Jwt, KeyError},
    },
    workers::Workers,
};

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Features(#[from] FeatureError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    PortsFile(#[from] PortsFileError),
    #[error("--auth-token: {0}")]
    TokenKey(#[from] KeyError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Begin(#[from] BeginError),
    #[error("failed to join the cluster: {0}")]
    Publish(node::ProposeError),
    #[error("a learner must want the cluster features that are on: {0}")]
    LearnerDiffers(String),
    #[error("{0}")]
    Failed(String),
}

/// A member that serves.
pub struct Server {
    config: Config,
    ports_file: PortsFile,
    member: Member,
    stop: watch::Sender<bool>,
    /// The ports for clients. Their calls need the other members until they have ended.
    ports: JoinSet<()>,
    tasks: JoinSet<()>,
}

impl Server {
    /// Listens, opens the data dir, joins the cluster and serves. Returns when clients can be served.
    pub fn start(config: Config) -> BoxFuture<'static, Result<Server, RunError>> {
        // Boxed: the code of the whole server is generated here once, and not in each crate that awaits it.
        Box::pin(Server::start_unboxed(config))
    }

    async fn start_unboxed(config: Config) -> Result<Server, RunError> {
        let mut ports_file = PortsFile::prepare(config.ports_file.as_deref())?;
        let features = Features::from_flags(&config)?;
        let tokens = tokens(&config)?;
        // Ports first: a second server on the same ports must not touch the data dir.
        let listeners = Listeners::bind(&config).await?;
        let bound = listeners.bound()?;
        let peer_port_may_change = config.listen_peer_urls.iter().any(Url::has_port_zero);
        // From here on nothing sees port 0.
        let config = config.with_bound(&bound)?;
        listeners::log(&config, &bound);
        ports_file.publish(&listeners::ports(&config, &bound))?;

        let metrics = Arc::new(Metrics::new(config.metrics == MetricsLevel::Extensive));
        let member = Member::start(&config, &features, &metrics).await?;
        let node = member.part.node.clone();
        if peer_port_may_change {
            member.warn_of_unknown_peer_urls(&config);
        }
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        member.serve_peers(listeners.peer.into_iter().zip(shown(&config.listen_peer_urls)), &mut tasks);
        if config.initial_election_tick_advance {
            tasks.spawn(member.shorten_first_election(stopped.clone()));
        }
        member.join(&features).await?;
        member.keep_watch(&config, &features, &mut tasks, &stopped);

        let serving = serving(&config, &node, &metrics);
        let mut ports = JoinSet::new();
        let workers =
            Arc::new(Workers::start().map_err(|e| RunError::Failed(format!("failed to start threads: {e}")))?);
        let pool = tokio::runtime::Handle::current();
        let context = Context::new(member.part.clone(), limits(&config), tokens, metrics.clone(), pool);
        let routes = Routes::new(&context, &config, &metrics);
        let all = routes.clients(listeners.client_http.is_empty());
        let pages = routes.pages();
        for (listener, url) in listeners.client.into_iter().zip(shown(&config.listen_client_urls)) {
            tracing::info!(address = %url, "serving client traffic insecurely; this is strongly discouraged!");
            ports.spawn(serve(listener, all.clone(), serving.clone(), workers.clone(), stopped.clone()));
        }
        for listener in listeners.client_http {
            ports.spawn(serve(listener, pages.clone(), serving.clone(), workers.clone(), stopped.clone()));
        }
        for listener in listeners.metrics {
            let router = http::metrics_only(Arc::new(HealthOf(context.clone())), metrics.clone());
            ports.spawn(serve(listener, Front::pages(router), serving.clone(), workers.clone(), stopped.clone()));
        }
        tasks.spawn(auto_compact(node.clone(), &config, stopped));
        tracing::info!("ready to serve client requests");
        Ok(Server { config, ports_file, member, stop, ports, tasks })
    }

    /// The effective configuration: every URL in it has the bound port where port 0 was asked for.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Resolves when the member has stopped by itself.
    pub async fn failed(&self) -> String {
        let mut life = self.node().life();
        loop {
            if let Life::Failed(why) = &*life.borrow_and_update() {
                return why.clone();
            }
            if life.changed().await.is_err() {
                return "the member has ended".into();
            }
        }
    }

    /// Accepts no more calls, lets those in flight end, hands the leadership over, then closes log and database.
    pub fn stop(self) -> BoxFuture<'static, ()> {
        Box::pin(self.stop_unboxed())
    }

    async fn stop_unboxed(mut self) {
        self.ports_file.withdraw();
        let _ = self.stop.send(true);
        while self.ports.join_next().await.is_some() {}
        self.member.hand_over().await;
        self.member.disconnect();
        while self.tasks.join_next().await.is_some() {}
        self.member.stop().await;
    }

    pub fn node(&self) -> &Arc<Node> {
        &self.member.part.node
    }
}

fn shown(urls: &[Url]) -> Vec<String> {
    urls.iter().map(ToString::to_string).collect()
}

fn auto_compact(
    node: Arc<Node>,
    config: &Config,
    mut stopped: watch::Receiver<bool>,
) -> impl Future<Output = ()> + use<> {
    let mode = config.auto_compaction;
    async move {
        tokio::select! {
            () = auto_compaction::run(node, mode) => {}
            _ = stopped.changed() => {}
        }
    }
}

/// Reads the keys for tokens, before anything is touched.
fn tokens(config: &Config) -> Result<Tokens, RunError> {
    Ok(match &config.auth_token {
        AuthToken::Simple => Tokens::Simple,
        AuthToken::Jwt(options) => Tokens::Jwt(Box::new(Jwt::load(options)?)),
        AuthToken::Off => Tokens::Off,
    })
}

fn limits(config: &Config) -> Limits {
    Limits {
        txn_ops_max: config.max_txn_ops,
        request_bytes_max: config.max_request_bytes,
        slow_request: config.warning_unary_request_duration,
        watch_progress_interval: config.watch_progress_notify_interval,
        bcrypt_cost: config.bcrypt_cost,
    }
}

fn serving(config: &Config, node: &Node, metrics: &Metrics) -> Serving {
    Serving {
        drain: Drain { grpc: metrics.grpc.clone(), max: node.request_timeout().min(DRAIN_MAX) },
        concurrent_streams_max: config.max_concurrent_streams,
        // Without a limit for the answer a ping would close nothing.
        keepalive_interval: config.grpc_keepalive_interval.filter(|_| config.grpc_keepalive_timeout.is_some()),
        keepalive_timeout: config.grpc_keepalive_timeout,
        keepalive_min_time: config.grpc_keepalive_min_time,
    }
}

/// How long a stop may take before it is cut off. Calls in flight may take `DRAIN_MAX` of it.
pub const STOP_MAX: Duration = Duration::from_secs(15);

/// The longest time that a stop waits for calls in flight, however long they may take otherwise.
const DRAIN_MAX: Duration = Duration::from_secs(10);
