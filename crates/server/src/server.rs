//! A member from its configuration: start, serve, stop.

use std::{sync::Arc, time::Duration};

use node::{Life, Node, StartError};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    auto_compaction,
    cluster::begin::BeginError,
    config::{AuthToken, Config, ConfigError, MetricsLevel},
    features::{FeatureError, Features},
    front::Front,
    health::HealthOf,
    http,
    listen::{ListenError, Listener, Serving, bind_peer, serve},
    member::Member,
    metrics::Metrics,
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
    member: Member,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Server {
    /// Listens, opens the data dir, joins the cluster and serves. Returns when clients can be served.
    pub async fn start(config: Config) -> Result<Server, RunError> {
        let features = Features::from_flags(&config)?;
        let tokens = tokens(&config)?;
        // Ports first: a second server on the same ports must not touch the data dir.
        let clients = bind_all(&config.listen_client_urls, &config).await?;
        let http_only = bind_all(&config.listen_client_http_urls, &config).await?;
        let metrics_only = bind_all(&config.listen_metrics_urls, &config).await?;
        let mut peer_ports = Vec::new();
        for url in &config.listen_peer_urls {
            peer_ports.push((bind_peer(url, &config).await?, url.to_string()));
        }
        let metrics = Arc::new(Metrics::new(config.metrics == MetricsLevel::Extensive));
        let member = Member::start(&config, &features, &metrics).await?;
        let node = member.part.node.clone();
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        member.serve_peers(peer_ports, &mut tasks);
        if config.initial_election_tick_advance {
            tasks.spawn(member.shorten_first_election(stopped.clone()));
        }
        member.join(&features).await?;
        member.keep_watch(&config, &features, &mut tasks, &stopped);

        let serving = serving(&config);
        let workers =
            Arc::new(Workers::start().map_err(|e| RunError::Failed(format!("failed to start threads: {e}")))?);
        let pool = tokio::runtime::Handle::current();
        let context = Context::new(member.part.clone(), limits(&config), tokens, metrics.clone(), pool);
        let routes = Routes::new(&context, &config, &metrics);
        let all = routes.clients(http_only.is_empty());
        let pages = routes.pages();
        for (listener, url) in clients {
            tracing::info!(address = %url, "serving client traffic insecurely; this is strongly discouraged!");
            tasks.spawn(serve(listener, all.clone(), serving.clone(), workers.clone(), stopped.clone()));
        }
        for (listener, _) in http_only {
            tasks.spawn(serve(listener, pages.clone(), serving.clone(), workers.clone(), stopped.clone()));
        }
        for (listener, _) in metrics_only {
            let router = http::metrics_only(Arc::new(HealthOf(context.clone())), metrics.clone());
            tasks.spawn(serve(listener, Front::pages(router), serving.clone(), workers.clone(), stopped.clone()));
        }
        tasks.spawn(auto_compact(node.clone(), &config, stopped));
        tracing::info!("ready to serve client requests");
        Ok(Server { member, stop, tasks })
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

    /// Hands the leadership over, lets calls under way end, then closes log and database.
    pub async fn stop(mut self) {
        self.member.hand_over().await;
        let _ = self.stop.send(true);
        self.member.disconnect();
        while self.tasks.join_next().await.is_some() {}
        self.member.stop().await;
    }

    pub fn node(&self) -> &Arc<Node> {
        &self.member.part.node
    }
}

async fn bind_all(urls: &[crate::config::Url], config: &Config) -> Result<Vec<(Listener, String)>, ListenError> {
    let mut listeners = Vec::new();
    for url in urls {
        listeners.push((Listener::bind(url, config).await?, url.to_string()));
    }
    Ok(listeners)
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

fn serving(config: &Config) -> Serving {
    Serving {
        concurrent_streams_max: config.max_concurrent_streams,
        // Without a limit for the answer a ping would close nothing.
        keepalive_interval: config.grpc_keepalive_interval.filter(|_| config.grpc_keepalive_timeout.is_some()),
        keepalive_timeout: config.grpc_keepalive_timeout,
        keepalive_min_time: config.grpc_keepalive_min_time,
    }
}

/// How long a stop may take before it is cut off.
pub const STOP_MAX: Duration = Duration::from_secs(10);
