//! `lockgate ofrep`: gates for programs in any language.

use std::{error::Error, net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use clap::Parser;
use ofrep::{Source, View};
use server::ports_file::{Ports, PortsFile, reachable_url};
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

use crate::signal::StopSignal;

/// Serves gates over OpenFeature's remote evaluation protocol: those of FeatureGate `cluster` as NAME, cluster features of a
/// store as store.NAME.
#[derive(Parser, Debug)]
#[command(name = "lockgate ofrep")]
struct Ofrep {
    /// The address to serve on. With port 0 the system chooses the port.
    #[arg(long, default_value = "127.0.0.1:8016")]
    listen: SocketAddr,
    /// A file that gets the URL of the server as JSON, once it can be reached.
    #[arg(long)]
    ports_file: Option<PathBuf>,
    /// How to reach the API; as kubectl would unless given.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Where registries are.
    #[arg(long, default_value = featureset::config_map::NAMESPACE)]
    namespace: String,
    /// Endpoints of a lockgate store, such as 127.0.0.1:2379,127.0.0.1:22379, whose cluster features are served too.
    #[arg(long, value_delimiter = ',')]
    store_endpoints: Vec<String>,
    /// Who to log in to the store as, if it asks for users.
    #[arg(long, requires_all = ["store_endpoints", "store_password_file"])]
    store_user: Option<String>,
    /// A file whose first line is that user's password.
    #[arg(long, requires = "store_user")]
    store_password_file: Option<PathBuf>,
    /// Serves the store's features alone, without any Kubernetes-style API.
    #[arg(long, requires = "store_endpoints", conflicts_with_all = ["kubeconfig", "namespace"])]
    no_feature_sets: bool,
    /// The server's certificate, with its chain, for https; read again when it is renewed, as is the key.
    #[arg(long, requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// The key of that certificate.
    #[arg(long, requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,
    /// Tokens, one on each line; whoever asks needs one of them. Read again when it changes.
    #[arg(long)]
    token_file: Option<PathBuf>,
}

pub(crate) fn run(args: impl IntoIterator<Item = String>) -> ExitCode {
    let command = Ofrep::parse_from(args);
    if let Err(error) = server::logging::init_default() {
        eprintln!("lockgate ofrep: {error}");
        return ExitCode::FAILURE;
    }
    let started = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Box::<dyn Error>::from);
    let ended = started.and_then(|runtime| {
        let ended = runtime.block_on(serve(command));
        // Streams of clients do not hold up the end.
        runtime.shutdown_timeout(Duration::from_millis(200));
        ended
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockgate ofrep: {}", crate::api_command::chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

impl Ofrep {
    fn store_user(&self) -> Result<Option<ofrep::StoreUser>, String> {
        let (Some(name), Some(path)) = (&self.store_user, &self.store_password_file) else { return Ok(None) };
        let named = |error| format!("--store-password-file {}: {error}", path.display());
        ofrep::StoreUser::with_password_file(name, path).map(Some).map_err(named)
    }
}

/// Whom to follow.
struct Sources {
    kube: Option<kubeapi::Kube>,
    store: Option<ofrep::StoreClient>,
}

impl Sources {
    /// Neither has to answer yet.
    async fn open(command: &Ofrep) -> Result<Sources, Box<dyn Error>> {
        let kube = if command.no_feature_sets {
            None
        } else {
            let kube = kubeapi::Kube::connect(command.kubeconfig.as_deref()).await?;
            Some(kube.named(featureset::manager::OFREP))
        };
        let store = if command.store_endpoints.is_empty() {
            None
        } else {
            let named = |error| format!("--store-endpoints: {error}");
            let user = command.store_user()?;
            Some(ofrep::connect_store(&command.store_endpoints, user).await.map_err(named)?)
        };
        Ok(Sources { kube, store })
    }

    fn first_view(&self) -> View {
        fn not_yet<T>() -> Source<T> {
            Source::Unknown("it was not asked yet".to_owned())
        }
        View {
            sets: self.kube.as_ref().map_or(Source::NotFollowed, |_| not_yet()),
            store: self.store.as_ref().map_or(Source::NotFollowed, |_| not_yet()),
        }
    }

    fn follow(self, namespace: String, views: watch::Sender<Arc<View>>) -> JoinSet<()> {
        let mut followers = JoinSet::new();
        if let Some(kube) = self.kube {
            followers.spawn(ofrep::follow(kube, namespace, views.clone()));
        }
        if let Some(store) = self.store {
            followers.spawn(ofrep::follow_store(store, views));
        }
        followers
    }
}

/// Everything that can be wrong with the flags is found before anything is served.
async fn serve(command: Ofrep) -> Result<(), Box<dyn Error>> {
    let mut ports_file = PortsFile::prepare(command.ports_file.as_deref())?;
    let sources = Sources::open(&command).await?;
    let tls = match (&command.tls_cert_file, &command.tls_private_key_file) {
        (Some(certificate), Some(key)) => Some(ofrep::Tls::read(certificate, key)?),
        _ => None,
    };
    let tokens = command.token_file.as_deref().map(ofrep::Tokens::read).transpose()?;
    let listener = TcpListener::bind(command.listen)
        .await
        .map_err(|error| format!("failed to listen on {}: {error}", command.listen))?;
    let address = listener.local_addr()?;
    tracing::info!(%address, tls = tls.is_some(), "serving gates over OFREP");
    let scheme = if tls.is_some() { "https" } else { "http" };
    ports_file.publish(&Ports::default().with("ofrep", vec![reachable_url(scheme, address)]))?;
    let (sender, views) = watch::channel(Arc::new(sources.first_view()));
    let mut followers = sources.follow(command.namespace, sender);
    followers.spawn(ofrep::reload(tls.clone(), tokens.clone(), ofrep::RELOAD_EVERY));
    let router = ofrep::router(views, tokens);
    let serving = async {
        match tls {
            Some(tls) => ofrep::serve_tls(listener, tls, router).await,
            None => ofrep::serve(listener, router).await,
        }
    };
    tokio::select! {
        served = serving => served?,
        // Followers never end but by a fault of theirs.
        Some(ended) = followers.join_next() => ended?,
        _ = StopSignal::wait() => {}
    }
    Ok(())
}
