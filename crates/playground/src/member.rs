//! A store in this process: a single-member cluster without an API server.

use std::path::{Path, PathBuf};

use server::{
    RunError, STOP_MAX, Server,
    config::{Config, ConfigError, Parsed},
};

/// Why [`Member::start`] failed.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The member's configuration is invalid, such as a data directory whose path cannot be used.
    #[error("the embedded member cannot be set up")]
    Config(#[source] Box<ConfigError>),
    /// The member did not start: its data cannot be read, for example, or the disk is full.
    #[error("the embedded member failed to start in {}", dir.display())]
    Start {
        /// The data directory of the member.
        dir: PathBuf,
        /// The error with which the server gave up its start.
        source: Box<RunError>,
    },
}

/// A single-member cluster in this process. It listens on loopback addresses only.
pub struct Member {
    server: Server,
    endpoint: String,
}

impl Member {
    /// Starts the member on free ports that the system chooses, with its data in `dir`. Returns
    /// when the member serves clients.
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

    /// Completes with the reason when the member stops without a call of [`Member::stop`], for
    /// example after a disk error.
    pub async fn failed(&self) -> String {
        self.server.failed().await
    }

    /// Stops the member: calls in progress complete, then the log and the database are closed.
    /// Gives up after [`server::STOP_MAX`].
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
