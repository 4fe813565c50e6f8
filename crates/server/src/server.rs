//! A member from its configuration: start, serve, stop.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::Router;
use node::{DataDir, Identity, Life, Node, NodeOptions, Quota, StartError};
use proto::{
    Version,
    etcdserverpb::{
        cluster_server::ClusterServer, kv_server::KvServer, lease_server::LeaseServer,
        maintenance_server::MaintenanceServer,
    },
};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    BINARY_VERSION, auto_compaction,
    config::{Config, ConfigError, MetricsLevel},
    features::{FeatureError, Features},
    gateway,
    health::HealthOf,
    http,
    listen::{ListenError, Listener, Serving, serve},
    metrics::{
        Metrics,
        grpc::{GrpcLayer, Guard},
    },
    observer::{self, MetricsObserver},
    services::{
        ClusterService, Context, Known, KvService, LeaseService, Limits, MaintenanceService, WatchService,
        hot::{HotKv, HotWatch},
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
    Start(#[from] StartError),
    #[error("failed to join the cluster: {0}")]
    Publish(node::ProposeError),
    #[error("{0}")]
    Failed(String),
}

/// A member that serves.
pub struct Server {
    node: Arc<Node>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl Server {
    /// Listens, opens the data dir, joins the cluster and serves. Returns when clients can be served.
    pub async fn start(config: Config) -> Result<Server, RunError> {
        let features = Features::from_flags(&config)?;
        // Ports first: a second server on the same ports must not touch the data dir.
        let clients = bind_all(&config.listen_client_urls, &config).await?;
        let http_only = bind_all(&config.listen_client_http_urls, &config).await?;
        let metrics_only = bind_all(&config.listen_metrics_urls, &config).await?;
        let metrics = Arc::new(Metrics::new(config.metrics == MetricsLevel::Extensive));
        let options = node_options(&config, &features, &metrics)?;
        let node = tokio::task::spawn_blocking(move || Node::start(options)).await;
        let node = Arc::new(node.map_err(|e| RunError::Failed(e.to_string()))??);
        observer::attach(&metrics, &node, &features);
        // Why the member has stopped says more than that it has.
        node.publish().await.map_err(|e| node.failure().map_or(RunError::Publish(e), RunError::Failed))?;

        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let serving = serving(&config);
        let workers =
            Arc::new(Workers::start().map_err(|e| RunError::Failed(format!("failed to start threads: {e}")))?);
        let context = Context::new(node.clone(), limits(&config), tokio::runtime::Handle::current());
        let grpc = grpc_router(&context, &metrics);
        let pages = pages(&context, &config, &metrics, grpc.clone());
        let access = http::Access::of(&config);
        let all = if http_only.is_empty() { grpc.merge(pages.clone()) } else { grpc };
        let all = access.clone().wrap(all.fallback(crate::fallback::answer));
        let pages = http::finish(pages, access);
        for (listener, url) in clients {
            tracing::info!(address = %url, "serving client traffic insecurely; this is strongly discouraged!");
            tasks.spawn(serve(listener, all.clone(), serving.clone(), workers.clone(), stopped.clone()));
        }
        for (listener, _) in http_only {
            tasks.spawn(serve(listener, pages.clone(), serving.clone(), workers.clone(), stopped.clone()));
        }
        for (listener, _) in metrics_only {
            let router = http::metrics_only(Arc::new(HealthOf(context.clone())), metrics.clone());
            tasks.spawn(serve(listener, router, serving.clone(), workers.clone(), stopped.clone()));
        }
        tasks.spawn(auto_compact(node.clone(), &config, stopped));
        tracing::info!("ready to serve client requests");
        Ok(Server { node, stop, tasks })
    }

    /// Resolves when the member has stopped by itself.
    pub async fn failed(&self) -> String {
        let mut life = self.node.life();
        loop {
            if let Life::Failed(why) = &*life.borrow_and_update() {
                return why.clone();
            }
            if life.changed().await.is_err() {
                return "the member has ended".into();
            }
        }
    }

    /// Lets calls under way end, then closes log and database.
    pub async fn stop(mut self) {
        let _ = self.stop.send(true);
        while self.tasks.join_next().await.is_some() {}
        let node = self.node.clone();
        if tokio::task::spawn_blocking(move || node.stop()).await.is_err() {
            tracing::error!("failed to stop the member");
        }
    }

    pub fn node(&self) -> &Arc<Node> {
        &self.node
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

fn node_options(config: &Config, features: &Features, metrics: &Arc<Metrics>) -> Result<NodeOptions, RunError> {
    let data_dir = DataDir::new(&config.data_dir, config.wal_dir.clone());
    let identity = identity(config, &data_dir)?;
    let (major, minor) = config.initial_cluster_version;
    let observer = Arc::new(MetricsObserver(metrics.clone()));
    Ok(NodeOptions {
        data_dir,
        name: config.name.clone(),
        identity,
        client_urls: config.advertise_client_urls.iter().map(ToString::to_string).collect(),
        binary_version: BINARY_VERSION,
        initial_version: Version::new(major as u16, minor as u16),
        backend: storage::Options {
            batch_interval: config.backend_batch_interval,
            batch_limit: config.backend_batch_limit,
            unsafe_no_sync: config.unsafe_no_fsync,
            observer: Some(observer.clone()),
            ..Default::default()
        },
        wal: wal::Options { no_sync: config.unsafe_no_fsync, ..Default::default() },
        store: mvcc::Options::default(),
        quota: Quota::new(config.quota_backend_bytes),
        tick: config.heartbeat_interval,
        election_ticks: config.election_ticks() as usize,
        pre_vote: true,
        snapshot_count: config.snapshot_count,
        catch_up_entries: config.snapshot_catchup_entries,
        wals_max: (config.max_wals > 0).then_some(config.max_wals as usize),
        request_bytes_max: config.max_request_bytes,
        slow_apply: config.warning_apply_duration,
        compaction_batch: config.compaction_batch_limit,
        compaction_pause: config.compaction_sleep_interval,
        defrag_threshold_bytes: config.bootstrap_defrag_threshold_bytes,
        lease_checkpoints: features.enabled("LeaseCheckpoint"),
        observer,
    })
}

/// The `initial-*` flags count only while the data dir holds no member.
fn identity(config: &Config, data_dir: &DataDir) -> Result<Option<Identity>, RunError> {
    match config.verify_bootstrap() {
        Ok(initial) => {
            let urls = initial.peer_urls.iter().map(ToString::to_string).collect();
            let initial_cluster = BTreeMap::from([(initial.name, urls)]);
            Ok(Some(Identity { initial_cluster, token: initial.token }))
        }
        Err(_) if wal::Wal::exists(&data_dir.wal()) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn limits(config: &Config) -> Limits {
    Limits {
        txn_ops_max: config.max_txn_ops,
        request_bytes_max: config.max_request_bytes,
        slow_request: config.warning_unary_request_duration,
        watch_progress_interval: config.watch_progress_notify_interval,
    }
}

fn serving(config: &Config) -> Serving {
    Serving {
        concurrent_streams_max: config.max_concurrent_streams,
        keepalive_interval: config.grpc_keepalive_interval,
        keepalive_timeout: config.grpc_keepalive_timeout,
    }
}

fn grpc_router(context: &Context, metrics: &Arc<Metrics>) -> Router {
    let max = context.message_bytes_max();
    let kv = KvServer::new(KvService(context.clone())).max_decoding_message_size(max);
    let lease = LeaseServer::new(LeaseService(context.clone())).max_decoding_message_size(max);
    let maintenance = MaintenanceServer::new(MaintenanceService(context.clone())).max_decoding_message_size(max);
    let cluster = ClusterServer::new(ClusterService(context.clone())).max_decoding_message_size(max);
    let mut routes = tonic::service::Routes::builder();
    routes
        .add_service(Known::new(HotKv { context: context.clone(), rest: kv }))
        .add_service(Known::new(HotWatch(WatchService(context.clone()))))
        .add_service(Known::new(lease))
        .add_service(Known::new(maintenance))
        .add_service(Known::new(cluster))
        .add_service(crate::health::grpc())
        .add_service(crate::reflection::service());
    routes.routes().into_axum_router().reset_fallback().layer(GrpcLayer::new(metrics.grpc.clone(), guard(context)))
}

fn guard(context: &Context) -> Guard {
    let node = context.node.clone();
    Guard {
        message_bytes_max: context.message_bytes_max(),
        slow: context.limits.slow_request,
        has_leader: Arc::new(move || node.status().leader != 0),
    }
}

/// Pages for people and probes, and the JSON gateway.
fn pages(context: &Context, config: &Config, metrics: &Arc<Metrics>, grpc: Router) -> Router {
    let pages = http::routes(Arc::new(HealthOf(context.clone())), metrics.clone());
    if !config.enable_grpc_gateway {
        return pages;
    }
    pages.merge(gateway::router(grpc, gateway::Limits::for_messages(context.message_bytes_max())))
}

/// How long a stop may take before it is cut off.
pub const STOP_MAX: Duration = Duration::from_secs(10);
