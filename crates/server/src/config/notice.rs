//! What reading the configuration wants logged, kept until logging itself is configured.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// An `ETCD_` variable set a flag.
    EnvUsed {
        name: String,
        value: String,
    },
    /// `ETCD_X=y` that names no flag.
    EnvUnknown {
        assignment: String,
    },
    /// `ETCD_VERSION`, which would print the version.
    EnvVersion {
        value: String,
    },
    /// A flag or key that etcd takes and ignores for ever.
    Retired {
        name: String,
    },
    /// A setting that is understood but changes nothing here.
    NoEffect {
        name: &'static str,
        why: &'static str,
    },
    ConfigFile {
        path: String,
    },
    SinglePort,
    DefaultName {
        name: String,
    },
    DataDir {
        dir: String,
    },
    DefaultHost {
        host: String,
    },
    /// A duration below the least one of its flag.
    TooShort {
        name: &'static str,
        given: Duration,
        used: Duration,
    },
    /// A cost of hashing that there is not.
    BcryptCost {
        given: u64,
    },
}

impl Notice {
    /// Writes the notice with etcd's words and fields.
    pub fn log(&self) {
        match self {
            Notice::EnvUsed { name, value } => tracing::info!(
                "variable-name" = name,
                "variable-value" = value,
                "recognized and used environment variable"
            ),
            Notice::EnvUnknown { assignment } => {
                tracing::warn!("environment-variable" = assignment, "unrecognized environment variable")
            }
            Notice::EnvVersion { value } => {
                tracing::warn!(key = "ETCD_VERSION", value, "cannot set special environment variable")
            }
            Notice::Retired { name } => {
                tracing::warn!("flag-name" = name, "flag is no longer supported - ignoring")
            }
            Notice::NoEffect { name, why } => tracing::warn!("flag-name" = name, why, "flag has no effect"),
            Notice::ConfigFile { path } => tracing::info!(
                path,
                "loaded server configuration, other configuration command line flags and environment variables \
                 will be ignored if provided"
            ),
            Notice::SinglePort => {
                tracing::warn!("Running http and grpc server on single port. This is not recommended for production.")
            }
            Notice::DefaultName { name } => tracing::warn!(
                name,
                "it isn't recommended to use default name, please set a value for --name. \
                 Note that etcd might run into issue when multiple members have the same default name"
            ),
            Notice::DataDir { dir } => tracing::warn!("data-dir" = dir, "'data-dir' was empty; using default"),
            Notice::DefaultHost { host } => tracing::info!(host, "detected default host for advertise"),
            Notice::TooShort { name, given, used } => {
                tracing::warn!("flag-name" = name, ?given, ?used, "adjusting the duration to the shortest one allowed")
            }
            Notice::BcryptCost { given } => tracing::warn!(
                "min-cost" = auth::COSTS.start(),
                "max-cost" = auth::COSTS.end(),
                "default-cost" = auth::COST_DEFAULT,
                "given-cost" = given,
                "use default bcrypt cost instead of the invalid given cost"
            ),
        }
    }
}
