//! Flags, `ETCD_*` variables and the config file: what a member is asked to be, checked and typed.
//!
//! One table (`table`) holds every flag with its kind, default, help and status. A source fills `Settings`,
//! `Config` is built from them, and `validate` refuses what etcd refuses and what this version cannot do.

mod args;
mod auth_token;
mod bootstrap;
mod bound;
mod build;
mod duration;
mod error;
mod file;
mod help;
mod host;
mod log;
mod notice;
mod retired;
mod settings;
pub mod table;
mod url;
mod validate;
mod value;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use auth_token::AuthToken;
pub use bootstrap::InitialCluster;
pub use bound::Bound;
pub use duration::format as format_duration;
pub use error::ConfigError;
pub use help::{flags_page, help_text, usage_text, version_text};
pub use log::{LogFormat, LogLevel, LogOutput, Rotation};
pub use notice::Notice;
pub use url::{Scheme, Url, UrlError};

/// What the command line asks for.
#[derive(Debug)]
pub enum Parsed {
    Run(Box<Config>),
    /// Text to print before a successful end.
    Help(String),
    /// Print `version_text`, to which the binary adds its commit.
    Version,
}

/// A checked configuration. Zeros that stand for a default are already replaced.
#[derive(Debug, Clone)]
pub struct Config {
    pub name: String,
    pub data_dir: PathBuf,
    /// `None`: inside the data dir.
    pub wal_dir: Option<PathBuf>,
    pub snapshot_count: u64,
    pub snapshot_catchup_entries: u64,
    /// Finished log segments to keep; 0 keeps all.
    pub max_wals: u64,
    pub heartbeat_interval: Duration,
    pub election_timeout: Duration,

    pub listen_peer_urls: Vec<Url>,
    pub listen_client_urls: Vec<Url>,
    /// If not empty, HTTP is served here and only gRPC on `listen_client_urls`.
    pub listen_client_http_urls: Vec<Url>,
    pub listen_metrics_urls: Vec<Url>,
    pub advertise_client_urls: Vec<Url>,
    pub advertise_peer_urls: Vec<Url>,
    pub socket_reuse_port: bool,
    /// Gets the bound URLs once all listeners are bound; see `ports_file`.
    pub ports_file: Option<PathBuf>,

    /// As written; read it with `verify_bootstrap` when the data dir holds no member yet.
    pub initial_cluster: String,
    pub initial_cluster_state: ClusterState,
    pub initial_cluster_token: String,
    /// The cluster version does not rise beyond this: `(3, 7)` or `(3, 8)`.
    pub initial_cluster_version: (u64, u64),
    pub strict_reconfig_check: bool,
    pub pre_vote: bool,
    pub initial_election_tick_advance: bool,
    pub max_learners: usize,
    pub force_new_cluster: bool,
    pub raft_read_timeout: Duration,
    pub raft_write_timeout: Duration,
    /// `None`: never.
    pub corrupt_check_time: Option<Duration>,
    pub compact_hash_check_time: Duration,
    pub lease_checkpoint_interval: Duration,

    /// Bytes at which NOSPACE is raised; `None`: no quota.
    pub quota_backend_bytes: Option<u64>,
    pub backend_batch_interval: Duration,
    pub backend_batch_limit: usize,
    pub max_txn_ops: usize,
    pub max_request_bytes: usize,
    pub max_concurrent_streams: u32,
    pub grpc_keepalive_min_time: Duration,
    /// `None`: no pings.
    pub grpc_keepalive_interval: Option<Duration>,
    /// `None`: no pings.
    pub grpc_keepalive_timeout: Option<Duration>,
    pub enable_grpc_gateway: bool,

    pub auto_compaction: AutoCompaction,
    pub compaction_batch_limit: usize,
    pub compaction_sleep_interval: Duration,
    pub watch_progress_notify_interval: Duration,
    pub warning_apply_duration: Duration,
    pub warning_unary_request_duration: Duration,
    /// `None`: never defragment at start.
    pub bootstrap_defrag_threshold_bytes: Option<u64>,
    pub downgrade_check_time: Option<Duration>,
    /// `Name=true,Other=false`, for crate `featuregate` to read.
    pub feature_gates: String,
    pub cluster_feature_gates: String,
    pub unsafe_no_fsync: bool,

    pub auth_token: AuthToken,
    pub auth_token_ttl: Duration,
    pub bcrypt_cost: u32,

    /// Allowed origins; `None`: all.
    pub cors: Option<Vec<String>>,
    /// Allowed host names of HTTP requests; `None`: all.
    pub host_whitelist: Option<Vec<String>>,

    pub metrics: MetricsLevel,
    pub log_level: LogLevel,
    pub log_format: LogFormat,
    pub log_outputs: Vec<LogOutput>,
    /// Rotation of the one file among `log_outputs`.
    pub log_rotation: Option<Rotation>,

    /// Settings that differ from the defaults, as `(flag, value)`, for the log at start.
    pub changed: Vec<(&'static str, String)>,
    /// To be logged once logging is set up.
    pub notices: Vec<Notice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterState {
    New,
    Existing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutoCompaction {
    Off,
    /// Keep the history of this time.
    Periodic(Duration),
    /// Keep this many revisions.
    Revision(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsLevel {
    Basic,
    /// With histograms of every gRPC method's latency.
    Extensive,
}

impl Config {
    /// Reads a command line (without the program's name) and an environment.
    pub fn from_args(args: &[String], env: &[(String, String)]) -> Result<Parsed, ConfigError> {
        Config::from_args_on(args, env, host::default_host)
    }

    /// As `from_args`, with the machine's address for advertising given by `default_host`.
    fn from_args_on(
        args: &[String],
        env: &[(String, String)],
        default_host: fn() -> Option<IpAddr>,
    ) -> Result<Parsed, ConfigError> {
        let (mut settings, mut notices) = match args::parse(args)? {
            args::Command::Help => return Ok(Parsed::Help(help_text())),
            args::Command::Version => return Ok(Parsed::Version),
            args::Command::Run(settings, notices) => (settings, notices),
        };
        let file = match settings.text("config-file") {
            path if !path.is_empty() => Some(path),
            _ => env.iter().find(|(name, value)| name == "ETCD_CONFIG_FILE" && !value.is_empty()).map(|e| e.1.clone()),
        };
        let from_file = file.is_some();
        match file {
            Some(path) => {
                notices.clear();
                settings = file::read(Path::new(&path), &mut notices)?;
                notices.push(Notice::ConfigFile { path });
            }
            None => args::add_env(&mut settings, &mut notices, env)?,
        }
        let mut config = build::build(&settings, notices, from_file)?;
        config.advertise_default_host(&settings, default_host);
        Ok(Parsed::Run(Box::new(config)))
    }

    pub fn election_ticks(&self) -> u64 {
        (self.election_timeout.as_millis() / self.heartbeat_interval.as_millis().max(1)) as u64
    }

    /// Longest time for a request: 5 s for queues and the disk, and two elections.
    pub fn request_timeout(&self) -> Duration {
        Duration::from_secs(5) + 2 * self.election_timeout
    }
}

#[cfg(test)]
mod tests;
