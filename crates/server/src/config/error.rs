//! Why a configuration was refused. Texts that scripts know from etcd are kept word for word.

use std::path::PathBuf;

use super::duration;
use super::retired::Successor;
use super::url::Url;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("flag provided but not defined: -{name}{}", hint(.nearest, "--"))]
    UnknownFlag { name: String, nearest: Option<&'static str> },
    #[error("flag provided but not defined: -{name} (gone since etcd 3.7; use {successor})")]
    RenamedFlag { name: String, successor: Successor },
    #[error("flag needs an argument: -{0}")]
    MissingArgument(&'static str),
    #[error("bad flag syntax: {0}")]
    FlagSyntax(String),
    #[error("invalid boolean value {value:?} for -{flag}: {reason}")]
    BadBool { flag: &'static str, value: String, reason: String },
    #[error("invalid value {value:?} for flag -{flag}: {reason}")]
    BadFlag { flag: &'static str, value: String, reason: String },

    #[error("{0:?} is not a valid flag")]
    NotAFlag(String),
    #[error("invalid value {value:?} for {name}: {reason}")]
    BadEnv { name: String, value: String, reason: String },
    #[error(
        "conflicting environment variable is shadowed by corresponding command-line flag \
         (either unset environment variable or disable flag)): {0}"
    )]
    ShadowedEnv(String),

    #[error("cannot read config file {}: {source}", path.display())]
    ReadFile { path: PathBuf, source: std::io::Error },
    #[error("config file {}: {message}", path.display())]
    BadYaml { path: PathBuf, message: String },
    #[error("config file {}, line {line}: unknown key {key:?}{}", path.display(), hint(.nearest, ""))]
    UnknownKey { path: PathBuf, line: u64, key: String, nearest: Option<String> },
    #[error("config file {}, line {line}: key {key:?} is gone since etcd 3.7; use {successor}", path.display())]
    RenamedKey { path: PathBuf, line: u64, key: String, successor: Successor },
    #[error("config file {}, line {line}: {key}: {reason}", path.display())]
    BadKey { path: PathBuf, line: u64, key: String, reason: String },

    #[error("--{flag}: {why}")]
    Refused { flag: &'static str, why: &'static str },
    #[error("--{flag}: {url}: TLS is not supported by this version; use an http:// or unix:// URL")]
    TlsUrl { flag: &'static str, url: String },
    #[error("--{flag} must not be negative (set to {})", duration::format(*.nanos))]
    NegativeDuration { flag: &'static str, nanos: i64 },
    #[error("{0}")]
    Invalid(String),
    #[error("--advertise-client-urls is required when --listen-client-urls is set explicitly")]
    UnsetAdvertiseClientUrls,

    #[error("couldn't find local name {0:?} in the initial cluster configuration")]
    NoLocalName(String),
    #[error("error setting up initial cluster: {0}")]
    BadInitialCluster(super::url::UrlError),
    #[error(
        "--{flag}: {url}: port 0 stands for the port of a listener, and --{listen} has no URL with port 0 for it; \
         give the port"
    )]
    AdvertisedPortZero { flag: &'static str, listen: &'static str, url: Url },
    #[error(
        "--initial-cluster: {name}={url}: port 0 stands for the port of a peer URL of this member, and \
         --initial-advertise-peer-urls has no URL with port 0 for it; give the port"
    )]
    OwnPortZero { name: String, url: Url },
    #[error(
        "--initial-cluster: {name}={url}: another member cannot be dialled at port 0; give the port that it listens on"
    )]
    OtherPortZero { name: String, url: Url },
    #[error("initial cluster {0} has duplicate url")]
    DuplicateUrl(String),
    #[error("--initial-cluster has {missing} but missing from --initial-advertise-peer-urls={advertised}")]
    NotAdvertised { missing: String, advertised: String },
    #[error("--initial-advertise-peer-urls has {missing} but missing from --initial-cluster={cluster}")]
    NotInCluster { missing: String, cluster: String },
}

impl ConfigError {
    /// The exit code of etcd: 2 for a command line it cannot read, 1 for settings it will not run with.
    pub fn exit_code(&self) -> i32 {
        use ConfigError::*;
        match self {
            UnknownFlag { .. } | RenamedFlag { .. } | MissingArgument(_) | FlagSyntax(_) => 2,
            BadBool { .. } | BadFlag { .. } => 2,
            _ => 1,
        }
    }
}

fn hint(nearest: &Option<impl AsRef<str>>, dashes: &str) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean {dashes}{}?)", name.as_ref())).unwrap_or_default()
}
