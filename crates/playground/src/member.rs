//! A member within this process, for programs that need a store and not a cluster.

use std::path::{Path, PathBuf};

use server::{
    RunError, STOP_MAX, Server,
    config::{Config, ConfigError, Parsed},
};

#[derive(Debug, thiserror::Error)]
pub enum MemberError {
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
    /// Starts on ports that the system chooses, with its data in `dir`. Returns when clients can be served.
    pub async fn start(dir: &Path) -> Result<Member, MemberError> {
        let config = config(dir).map_err(|error| MemberError::Config(error.into()))?;
        let server = Server::start(config).await;
        let server = server.map_err(|source| MemberError::Start { dir: dir.to_owned(), source: source.into() })?;
        let url = server.config().listen_client_urls.first();
        let endpoint = url.map(|url| format!("{}:{}", url.host, url.port)).unwrap_or_default();
        Ok(Member { server, endpoint })
    }

    /// The `host:port` that etcd clients connect to.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Resolves when the member has stopped by itself, as when its disk fails.
    pub async fn failed(&self) -> String {
        self.server.failed().await
    }

    /// Waits for calls under way, then closes log and database. Gives up after a while.
    pub async fn stop(self) {
        if tokio::time::timeout(STOP_MAX, self.server.stop()).await.is_err() {
            tracing::warn!("gave up waiting for an orderly end of the embedded member");
        }
    }
}

fn config(dir: &Path) -> Result<Config, ConfigError> {
    const ANY: &str = "http://127.0.0.1:0";
    let dir = dir.display().to_string();
    let cluster = format!("default={ANY}");
    let flags = [
        ("--data-dir", dir.as_str()),
        ("--listen-client-urls", ANY),
        ("--advertise-client-urls", ANY),
        ("--listen-peer-urls", ANY),
        ("--initial-advertise-peer-urls", ANY),
        ("--initial-cluster", &cluster),
    ];
    let args: Vec<String> = flags.iter().map(|(name, value)| format!("{name}={value}")).collect();
    match Config::from_args(&args, &[])? {
        Parsed::Run(config) => Ok(*config),
        Parsed::Help(_) | Parsed::Version => unreachable!("no flag above asks for help or version"),
    }
}
