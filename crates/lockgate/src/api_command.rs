//! `lockgate apiserver` and `lockgate playground`: an API for custom resources on a store.

use std::{
    error::Error,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use apiserver::{EtcdUser, Options, Server};
use clap::Parser;
use playground::{Member, MemberError};
use server::ports_file::{Ports, PortsFile};

use crate::signal::StopSignal;

const LONG: Duration = Duration::from_secs(3);

/// What the help of the server says about these commands.
pub(crate) const HELP: &str = "\nCommands:\n\n  \
    lockgate apiserver    Serves custom resources to kubectl from any etcd v3 API; see lockgate apiserver --help.\n  \
    lockgate playground   Starts a store and an API server in one process, to try things out.\n  \
    lockgate gates        Feature gates of a product: adds, promotes, retires and renders them; see lockgate gates --help.\n  \
    lockgate operator     Keeps the rows of FeatureGate cluster on any Kubernetes-style API; see lockgate operator --help.\n  \
    lockgate ofrep        Serves those gates to programs in any language; see lockgate ofrep --help.\n  \
    lockgate follow       Keeps a file with those gates, for programs that cannot ask; see lockgate follow --help.\n";

/// Serves custom resources to kubectl and other Kubernetes clients, from any etcd v3 API.
#[derive(Parser, Debug)]
#[command(name = "lockgate apiserver")]
struct ApiServer {
    #[command(flatten)]
    store: Store,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args, Debug, Default)]
struct Store {
    /// Endpoints of the store, such as 127.0.0.1:2379,127.0.0.1:22379. Without it a member runs within this process.
    #[arg(long, value_delimiter = ',')]
    etcd_servers: Vec<String>,
    /// Who to log in to the store as, if it asks for users.
    #[arg(long, requires_all = ["etcd_servers", "etcd_password_file"])]
    etcd_user: Option<String>,
    /// A file whose first line is that user's password.
    #[arg(long, requires = "etcd_user")]
    etcd_password_file: Option<PathBuf>,
}

impl Store {
    fn user(&self) -> Result<Option<EtcdUser>, String> {
        let (Some(name), Some(path)) = (&self.etcd_user, &self.etcd_password_file) else { return Ok(None) };
        let named = |error| format!("--etcd-password-file {}: {error}", path.display());
        EtcdUser::with_password_file(name, path).map(Some).map_err(named)
    }
}

/// Starts a store and an API server in one process, to try things out.
#[derive(Parser, Debug)]
#[command(name = "lockgate playground")]
struct Playground {
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args, Debug)]
struct Common {
    /// Where certificates, the kubeconfig and the data of an embedded member are kept.
    #[arg(long, default_value = "lockgate.api")]
    data_dir: PathBuf,
    /// The address to serve on. With port 0 the system chooses the port.
    #[arg(long, default_value = "127.0.0.1:6443", value_parser = address)]
    listen: SocketAddr,
    /// A file that gets the URLs of the server and of an embedded member as JSON, once they can be reached.
    #[arg(long)]
    ports_file: Option<PathBuf>,
    /// More names and addresses for the server's certificate.
    #[arg(long, value_delimiter = ',')]
    cert_names: Vec<String>,
    /// Bearer tokens: lines of token,user,uid,"group1,group2".
    #[arg(long)]
    token_auth_file: Option<PathBuf>,
    /// Features of the API server, such as CRDFieldLevelVersioning=false.
    #[arg(long, default_value = "")]
    feature_gates: String,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let right =
        "use an address of this machine and a port, such as 127.0.0.1:6443, [::1]:6443, or 0.0.0.0:6443 for all";
    text.parse().map_err(|error| format!("{error}; {right}"))
}

/// Runs a subcommand if the arguments name one.
pub(crate) fn run(args: &[String]) -> Option<ExitCode> {
    let name = args.first()?.as_str();
    let command = || std::iter::once(format!("lockgate {name}")).chain(args[1..].iter().cloned());
    let (store, common) = match name {
        "apiserver" => {
            let parsed = ApiServer::parse_from(command());
            (parsed.store, parsed.common)
        }
        "follow" => return Some(crate::follow_command::run(command())),
        "gates" => return Some(gates::run(command())),
        "ofrep" => return Some(crate::ofrep_command::run(command())),
        "operator" => return Some(crate::operator_command::run(command())),
        "playground" => (Store::default(), Playground::parse_from(command()).common),
        _ => return None,
    };
    Some(start(store, common, name == "playground"))
}

fn start(store: Store, common: Common, talkative: bool) -> ExitCode {
    // A playground is for people: what it says is what to try next.
    if !talkative && let Err(error) = server::logging::init_default() {
        eprintln!("lockgate: {error}");
        return ExitCode::FAILURE;
    }
    if let Err(error) = failpoint::setup_from_env() {
        eprintln!("lockgate: {error}");
        return ExitCode::FAILURE;
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("lockgate: failed to start threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(serve(store, common, talkative));
    runtime.shutdown_timeout(Duration::from_millis(200));
    match ended {
        Ok(signal) => signal.die(),
        Err(error) => {
            eprintln!("lockgate: {}", chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

async fn serve(store: Store, common: Common, talkative: bool) -> Result<StopSignal, Box<dyn Error>> {
    let etcd_user = store.user()?;
    let mut ports_file = PortsFile::prepare(common.ports_file.as_deref())?;
    let member = if store.etcd_servers.is_empty() { Some(open(&common.data_dir.join("member")).await?) } else { None };
    let etcd_servers = member.as_ref().map_or(store.etcd_servers, |member| vec![member.endpoint().to_owned()]);
    let options = Options {
        etcd_user,
        listen: common.listen,
        names: common.cert_names,
        token_file: common.token_auth_file,
        feature_gates: common.feature_gates,
        ..Options::new(etcd_servers.clone(), common.data_dir)
    };
    let server = Server::start(options).await?;
    let kubeconfig = server.kubeconfig().canonicalize()?;
    ports_file.publish(&ports(&server, member.as_ref()))?;
    if talkative {
        print!("{}", first_steps(&server.url(), &etcd_servers.join(","), &kubeconfig.display().to_string()));
    } else {
        tracing::info!(url = server.url(), kubeconfig = %kubeconfig.display(), "serving custom resources");
    }
    let signal = tokio::select! {
        signal = StopSignal::wait() => signal,
        // Nothing brings it back within this process, and whoever restarts what ended can.
        why = failed(member.as_ref()) => return Err(format!("the embedded member has stopped: {why}").into()),
    };
    ports_file.withdraw();
    server.stop().await;
    if let Some(member) = member {
        member.stop().await;
    }
    Ok(signal)
}

fn ports(server: &Server, member: Option<&Member>) -> Ports {
    let ports = Ports::default().with("api", vec![server.url()]);
    match member {
        Some(member) => ports.with("client", vec![format!("http://{}", member.endpoint())]),
        None => ports,
    }
}

/// A member waits for a dir that another process has, as etcd does, and people who wait with it should know what for.
async fn open(dir: &Path) -> Result<Member, MemberError> {
    let patience = tokio::spawn(tell_if_long(dir.to_owned()));
    let member = Member::start(dir).await;
    patience.abort();
    member
}

async fn tell_if_long(dir: PathBuf) {
    tokio::time::sleep(LONG).await;
    let dir = dir.display();
    eprintln!(
        "lockgate: {dir} is not open yet; if another process uses it, stop that one, or give another dir with --data-dir"
    );
}

/// Resolves when the embedded member, if there is one, has stopped by itself.
async fn failed(member: Option<&Member>) -> String {
    match member {
        Some(member) => member.failed().await,
        None => std::future::pending().await,
    }
}

fn first_steps(url: &str, store: &str, kubeconfig: &str) -> String {
    format!(
        "The API server is ready at {url}, its store at {store}.\n\
         Try, in another terminal:\n\n  \
           export KUBECONFIG={kubeconfig}\n  \
           kubectl get crd\n  \
           kubectl create configmap greeting --from-literal=text=hello\n  \
           kubectl get configmaps -o yaml\n\n\
         docs/apiserver.md goes on from here. Ctrl-C stops both.\n"
    )
}

pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
