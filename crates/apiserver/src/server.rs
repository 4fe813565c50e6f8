//! A running API server.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    task::JoinHandle,
};

use crate::{
    admission::{self, Policies},
    app::App,
    builtin, census, features, janitor, keeper, name, object,
    rest::{Api, Limits},
    serve::{
        auth::{MASTERS, TokenError, Tokens},
        kubeconfig,
        listen::{self, Setting, Tls, TlsError},
        metrics::Metrics,
        pki::{Authority, PkiError, write_private},
    },
    status::{Result, Status},
    store::{self, Change, Seen, Store},
};

const STORE_WAIT_MAX: Duration = Duration::from_secs(60);
const BOOKMARK_EVERY: Duration = Duration::from_secs(55);
const WATCH_BACKLOG_BYTES_MAX: usize = 4 << 20;
const WATCH_PATIENCE: Duration = Duration::from_secs(30);
const IDLE_MAX: Duration = Duration::from_secs(90);
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Where the server keeps its things, listens and stores.
#[derive(Clone, Debug)]
pub struct Options {
    /// Any etcd v3 API: `host:port` or `http://host:port`.
    pub etcd_servers: Vec<String>,
    /// Who to log in to the store as, if it asks for users.
    pub etcd_user: Option<client::User>,
    /// Certificates and the kubeconfig are kept here.
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    /// More names and addresses under which clients reach the server.
    pub names: Vec<String>,
    /// Bearer tokens: lines of `token,user,uid,"group1,group2"`.
    pub token_file: Option<PathBuf>,
    /// As `--feature-gates` of the command.
    pub feature_gates: String,
    /// How often a watch that asks for bookmarks gets one. Clients take a silent watch for dead after some minutes.
    pub bookmark_every: Duration,
    /// How many bytes of events may wait for the client of one watch. A client that lags further behind is given them from the
    /// store's history, as it takes them.
    pub watch_backlog_bytes_max: usize,
    /// How long a client with a full backlog may take nothing before its watch ends.
    pub watch_patience: Duration,
    /// How long a connection may be open on which nothing is asked.
    pub idle_max: Duration,
}

impl Options {
    pub fn new(etcd_servers: Vec<String>, data_dir: impl Into<PathBuf>) -> Options {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        Options {
            etcd_servers,
            etcd_user: None,
            data_dir: data_dir.into(),
            listen,
            names: Vec::new(),
            token_file: None,
            feature_gates: String::new(),
            bookmark_every: BOOKMARK_EVERY,
            watch_backlog_bytes_max: WATCH_BACKLOG_BYTES_MAX,
            watch_patience: WATCH_PATIENCE,
            idle_max: IDLE_MAX,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Pki(#[from] PkiError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Tokens(#[from] TokenError),
    #[error("--feature-gates")]
    Features(#[from] featuregate::SetErrors),
    #[error("failed to listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("failed to write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("the store at {endpoints} cannot be used")]
    Store { endpoints: String, source: client::Error },
    #[error("the store at {endpoints} does not answer")]
    StoreSilent { endpoints: String, source: Box<Status> },
    #[error("metrics cannot be set up")]
    Metrics(#[from] prometheus::Error),
}

/// A server that is ready, until it is stopped or dropped.
pub struct Server {
    address: SocketAddr,
    kubeconfig: PathBuf,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    chores: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts and returns when requests are answered.
    pub fn start(options: Options) -> BoxFuture<'static, Result<Server, StartError>> {
        // Boxed: the code of the whole server is generated here once, and not in each crate that awaits it.
        Box::pin(Server::start_unboxed(options))
    }

    async fn start_unboxed(options: Options) -> Result<Server, StartError> {
        let field_gates = features::field_gates(&options.feature_gates)?;
        let tokens = options.token_file.as_deref().map(Tokens::read).transpose()?.unwrap_or_default();
        let authority = Authority::open(&options.data_dir.join("pki"))?;
        let endpoints = options.etcd_servers.join(",");
        let store = Store::connect(options.etcd_servers.clone(), options.etcd_user.clone()).await;
        let store = store.map_err(|source| StartError::Store { endpoints: endpoints.clone(), source })?;
        let (catalog, policies) =
            ready(&store, field_gates).await.map_err(|source| StartError::StoreSilent { endpoints, source })?;
        let listener = TcpListener::bind(options.listen).await;
        let listener = listener.map_err(|source| StartError::Listen { address: options.listen, source })?;
        let address = listener.local_addr().map_err(|source| StartError::Listen { address: options.listen, source })?;
        let tls = Tls::new(&authority.cert, &authority.server(names(&options, address))?)?;
        let kubeconfig = write_kubeconfig(&options.data_dir, address, &authority)?;

        let metrics = Metrics::new()?;
        let (sender, receiver) = watch::channel(Arc::new(catalog));
        let (policies_sender, policies) = watch::channel(Arc::new(policies));
        let api = Api {
            printed: Arc::default(),
            store: store.clone(),
            catalog: receiver,
            policies,
            metrics: metrics.clone(),
            janitor: Arc::new(Notify::new()),
            field_gates,
            bookmark_every: options.bookmark_every,
            watch_limits: Limits { bytes_max: options.watch_backlog_bytes_max, patience: options.watch_patience },
        };
        let chores = vec![
            tokio::spawn(keeper::run(store.clone(), sender, metrics, field_gates)),
            tokio::spawn(admission::keeper::run(store.clone(), policies_sender)),
            tokio::spawn(janitor::run(api.clone())),
            tokio::spawn(census::run(api.clone())),
            tokio::spawn(keep_namespaces(store.clone())),
            tokio::spawn(janitor::compact(store)),
        ];
        let app = Arc::new(App { api, tokens, address: address.to_string() });
        let (stop, stopped) = watch::channel(false);
        let handler = move |peer, request| app.clone().handle(peer, request);
        let setting = Setting { tls, handler, idle_max: options.idle_max, stop: stopped };
        let serving = tokio::spawn(listen::run(listener, setting));
        tracing::info!(%address, "API server is ready");
        Ok(Server { address, kubeconfig, stop, serving, chores })
    }

    /// Where clients connect, as in the kubeconfig.
    pub fn url(&self) -> String {
        format!("https://{}", reachable(self.address))
    }

    /// A kubeconfig for an administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub async fn stop(mut self) {
        let _ = self.stop.send(true);
        let _ = (&mut self.serving).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
        self.chores.iter().for_each(JoinHandle::abort);
    }
}

/// Everywhere is nowhere to connect to: there it is this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], address.port())) } else { address }
}

fn names(options: &Options, address: SocketAddr) -> Vec<String> {
    let usual = [
        "localhost",
        "127.0.0.1",
        "::1",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ];
    let mut names: Vec<String> = usual.into_iter().map(str::to_owned).collect();
    names.extend(options.names.clone());
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    names.sort();
    names.dedup();
    names
}

fn write_kubeconfig(dir: &Path, address: SocketAddr, authority: &Authority) -> Result<PathBuf, StartError> {
    let admin = authority.client("kubernetes-admin", MASTERS)?;
    let path = dir.join("admin.kubeconfig");
    write_private(&path, &kubeconfig::text(&format!("https://{}", reachable(address)), &authority.cert, &admin))?;
    Ok(path)
}

/// Waits for the store and puts in it what must always be there.
async fn ready(store: &Store, field_gates: bool) -> Result<(crate::catalog::Catalog, Policies)> {
    let began = std::time::Instant::now();
    loop {
        let prepared = async {
            ensure_namespaces(store).await?;
            Ok((keeper::load(store, field_gates).await?, admission::keeper::load(store).await?))
        };
        match prepared.await {
            Err(status) if began.elapsed() < STORE_WAIT_MAX => {
                tracing::warn!(%status, "waiting for the store");
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            done => return done,
        }
    }
}

/// A store that was made anew has none of them.
async fn keep_namespaces(store: Store) {
    let mut losses = store.losses();
    while losses.changed().await.is_ok() {
        while let Err(error) = ensure_namespaces(&store).await {
            tracing::warn!(%error, "failed to make the namespaces that are always there");
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }
}

async fn ensure_namespaces(store: &Store) -> Result<()> {
    for namespace in builtin::NAMESPACES {
        ensure_namespace(store, namespace).await?;
    }
    Ok(())
}

async fn ensure_namespace(store: &Store, namespace: &str) -> Result<()> {
    let key = format!("{}{namespace}", store::prefix("", "namespaces"));
    if store.get(&key).await?.is_some() {
        return Ok(());
    }
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace, "uid": name::uid(), "creationTimestamp": object::now(),
                     "labels": {"kubernetes.io/metadata.name": namespace}},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    });
    // If another server was faster, it is there as well.
    store.write(&Seen { key, revision: 0 }, &[], Change::Put(object.to_string().as_bytes())).await.map(|_| ())
}
