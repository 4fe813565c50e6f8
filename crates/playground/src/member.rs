//! A member within this process, for those who want a store and not a cluster.

use std::{
    io,
    net::TcpListener,
    path::{Path, PathBuf},
};

use server::{
    ListenError, RunError, STOP_MAX, Server,
    config::{Config, ConfigError, Parsed},
};

/// Ports are looked for before they are bound, and somebody else may take them in between.
const TRIES_MAX: usize = 10;

#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    #[error("found no free port on 127.0.0.1")]
    Port(#[source] io::Error),
    #[error("the embedded member cannot be set up")]
    Config(#[source] Box<ConfigError>),
    #[error("the embedded member failed to start in {}", dir.display())]
    Start { dir: PathBuf, source: Box<RunError> },
}

/// A member alone in its cluster, reached from this machine only.
pub struct Member {
    server: Server,
    endpoint: String,
}

impl Member {
    /// Starts on ports that are free, with its data in `dir`. Returns when clients can be served.
    pub async fn start(dir: &Path) -> Result<Member, MemberError> {
        let mut tries = 1;
        loop {
            match Member::try_start(dir).await {
                Err(error) if is_port_taken(&error) && tries < TRIES_MAX => tries += 1,
                done => return done,
            }
        }
    }

    async fn try_start(dir: &Path) -> Result<Member, MemberError> {
        let (client, peer) = free_ports().map_err(MemberError::Port)?;
        let config = config(dir, client, peer).map_err(|error| MemberError::Config(error.into()))?;
        let server = Server::start(config).await;
        let server = server.map_err(|source| MemberError::Start { dir: dir.to_owned(), source: source.into() })?;
        Ok(Member { server, endpoint: format!("127.0.0.1:{client}") })
    }

    /// Where etcd clients connect.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Resolves when the member has stopped by itself, as when its disk fails.
    pub async fn failed(&self) -> String {
        self.server.failed().await
    }

    /// Lets calls under way end, then closes log and database. Gives up on what hangs.
    pub async fn stop(self) {
        if tokio::time::timeout(STOP_MAX, self.server.stop()).await.is_err() {
            tracing::warn!("gave up waiting for an orderly end of the embedded member");
        }
    }
}

fn is_port_taken(error: &MemberError) -> bool {
    let MemberError::Start { source, .. } = error else { return false };
    matches!(&**source, RunError::Listen(ListenError::Bind { cause, .. }) if cause.kind() == io::ErrorKind::AddrInUse)
}

fn config(dir: &Path, client: u16, peer: u16) -> Result<Config, ConfigError> {
    let (client, peer) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    let cluster = format!("default={peer}");
    let dir = dir.display().to_string();
    let flags = [
        ("--data-dir", dir.as_str()),
        ("--listen-client-urls", &client),
        ("--advertise-client-urls", &client),
        ("--listen-peer-urls", &peer),
        ("--initial-advertise-peer-urls", &peer),
        ("--initial-cluster", &cluster),
    ];
    let args: Vec<String> = flags.iter().map(|(name, value)| format!("{name}={value}")).collect();
    match Config::from_args(&args, &[])? {
        Parsed::Run(config) => Ok(*config),
        Parsed::Help(_) | Parsed::Version => unreachable!("no flag above asks for help or version"),
    }
}

/// Two ports that were free a moment ago; both are held while they are looked for, so they are not the same.
fn free_ports() -> io::Result<(u16, u16)> {
    let (one, other) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    Ok((one.local_addr()?.port(), other.local_addr()?.port()))
}
