//! A member within this process, for those who want a store and not a cluster.

use std::{
    io,
    net::TcpListener,
    path::{Path, PathBuf},
    time::Duration,
};

use server::{
    RunError, Server,
    config::{Config, ConfigError, Parsed},
};

const LONG: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    #[error("found no free port on 127.0.0.1")]
    Port(#[source] io::Error),
    #[error("the embedded member cannot be set up")]
    Config(#[source] ConfigError),
    #[error("the embedded member failed to start in {}", dir.display())]
    Start { dir: PathBuf, source: RunError },
}

/// A member alone in its cluster, reached from this machine only.
pub struct Embedded {
    pub server: Server,
    pub endpoint: String,
}

impl Embedded {
    pub async fn start(dir: &Path) -> Result<Embedded, EmbeddedError> {
        let (client, peer) = free_ports().map_err(EmbeddedError::Port)?;
        let config = config(dir, client, peer).map_err(EmbeddedError::Config)?;
        let patience = tokio::spawn(tell_if_long(dir.to_owned()));
        let server = Server::start(config).await;
        patience.abort();
        let server = server.map_err(|source| EmbeddedError::Start { dir: dir.to_owned(), source })?;
        Ok(Embedded { server, endpoint: format!("127.0.0.1:{client}") })
    }
}

/// A member waits for a dir that another process has, as etcd does, and people who wait with it should know what for.
async fn tell_if_long(dir: PathBuf) {
    tokio::time::sleep(LONG).await;
    let dir = dir.display();
    eprintln!(
        "lockgate: {dir} is not open yet; if another process uses it, stop that one, or give another dir with --data-dir"
    );
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
