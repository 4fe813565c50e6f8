//! Settings into a `Config`: types, units, and zeros replaced by what they stand for.

use std::path::PathBuf;
use std::time::Duration;

use super::error::ConfigError;
use super::notice::Notice;
use super::settings::Settings;
use super::table::Status;
use super::{AuthToken, AutoCompaction, ClusterState, Config, MetricsLevel, duration, log, validate};

const DEFAULT_QUOTA_BYTES: u64 = 2 << 30;

/// `from_file`: the config file keeps the default of --advertise-client-urls, the command line does not.
pub(super) fn build(settings: &Settings, mut notices: Vec<Notice>, from_file: bool) -> Result<Config, ConfigError> {
    let logging = log::build(settings)?;
    validate::before_build(settings, from_file)?;
    let name = settings.text("name");
    add_notices(settings, &name, &mut notices);
    let data_dir = match settings.text("data-dir") {
        dir if dir.is_empty() => {
            let dir = format!("{name}.etcd");
            notices.push(Notice::DataDir { dir: dir.clone() });
            dir
        }
        dir => dir,
    };
    let config = Config {
        data_dir: PathBuf::from(data_dir),
        wal_dir: Some(settings.text("wal-dir")).filter(|dir| !dir.is_empty()).map(PathBuf::from),
        // etcd takes 0 as its default too.
        snapshot_count: or(settings.uint("snapshot-count"), 10_000),
        snapshot_catchup_entries: settings.uint("snapshot-catchup-entries"),
        max_wals: settings.uint("max-wals"),
        heartbeat_interval: Duration::from_millis(settings.uint("heartbeat-interval")),
        election_timeout: Duration::from_millis(settings.uint("election-timeout")),

        listen_peer_urls: settings.urls("listen-peer-urls"),
        listen_client_urls: settings.urls("listen-client-urls"),
        listen_client_http_urls: settings.urls("listen-client-http-urls"),
        listen_metrics_urls: settings.urls("listen-metrics-urls"),
        advertise_client_urls: settings.urls("advertise-client-urls"),
        advertise_peer_urls: settings.urls("initial-advertise-peer-urls"),
        socket_reuse_port: settings.bool("socket-reuse-port"),
        ports_file: Some(settings.text("ports-file")).filter(|path| !path.is_empty()).map(PathBuf::from),

        initial_cluster: settings.text("initial-cluster"),
        initial_cluster_state: match settings.text("initial-cluster-state").as_str() {
            "existing" => ClusterState::Existing,
            _ => ClusterState::New,
        },
        initial_cluster_token: settings.text("initial-cluster-token"),
        initial_cluster_version: initial_cluster_version(settings)?,
        strict_reconfig_check: settings.bool("strict-reconfig-check"),
        pre_vote: settings.bool("pre-vote"),
        initial_election_tick_advance: settings.bool("initial-election-tick-advance"),
        max_learners: limit(settings, "max-learners", 1)?,
        force_new_cluster: settings.bool("force-new-cluster"),
        raft_read_timeout: settings.duration_or("raft-read-timeout", Duration::from_secs(5))?,
        raft_write_timeout: settings.duration_or("raft-write-timeout", Duration::from_secs(5))?,
        corrupt_check_time: positive(settings.duration("corrupt-check-time")?),
        lease_checkpoint_interval: settings.duration("lease-checkpoint-interval")?,
        compact_hash_check_time: settings.duration_or("compact-hash-check-time", Duration::from_secs(60))?,

        quota_backend_bytes: match settings.int("quota-backend-bytes") {
            0 => Some(DEFAULT_QUOTA_BYTES),
            bytes => u64::try_from(bytes).ok(),
        },
        backend_batch_interval: settings.duration_or("backend-batch-interval", Duration::from_millis(100))?,
        backend_batch_limit: limit(settings, "backend-batch-limit", 10_000)?,
        max_txn_ops: size(settings, "max-txn-ops")?,
        max_request_bytes: size(settings, "max-request-bytes")?,
        max_concurrent_streams: settings.uint("max-concurrent-streams") as u32,
        grpc_keepalive_min_time: settings.duration("grpc-keepalive-min-time")?,
        grpc_keepalive_interval: positive(settings.duration("grpc-keepalive-interval")?),
        grpc_keepalive_timeout: positive(settings.duration("grpc-keepalive-timeout")?),
        enable_grpc_gateway: settings.bool("enable-grpc-gateway"),

        auto_compaction: auto_compaction(settings)?,
        compaction_batch_limit: limit(settings, "compaction-batch-limit", 1_000)?,
        compaction_sleep_interval: settings.duration_or("compaction-sleep-interval", Duration::from_millis(10))?,
        watch_progress_notify_interval: settings
            .duration_or("watch-progress-notify-interval", Duration::from_secs(600))?,
        warning_apply_duration: settings.duration("warning-apply-duration")?,
        warning_unary_request_duration: settings
            .duration_or("warning-unary-request-duration", Duration::from_millis(300))?,
        bootstrap_defrag_threshold_bytes: Some(settings.uint("bootstrap-defrag-threshold-megabytes"))
            .filter(|megabytes| *megabytes > 0)
            .map(|megabytes| megabytes.saturating_mul(1 << 20)),
        downgrade_check_time: positive(settings.duration("downgrade-check-time")?),
        feature_gates: settings.text("feature-gates"),
        cluster_feature_gates: settings.text("cluster-feature-gates"),
        unsafe_no_fsync: settings.bool("unsafe-no-fsync"),

        auth_token: AuthToken::parse(&settings.text("auth-token"))?,
        auth_token_ttl: Duration::from_secs(or(settings.uint("auth-token-ttl"), 300)),
        bcrypt_cost: bcrypt_cost(settings, &mut notices),

        cors: unless_all(settings.list("cors")),
        host_whitelist: unless_all(settings.list("host-whitelist")),

        metrics: match settings.text("metrics").as_str() {
            "extensive" => MetricsLevel::Extensive,
            _ => MetricsLevel::Basic,
        },
        log_level: logging.level,
        log_format: logging.format,
        log_outputs: logging.outputs,
        log_rotation: logging.rotation,

        changed: settings.changed().map(|(flag, value)| (flag.name, value.to_string())).collect(),
        notices,
        name,
    };
    validate::refuse_unsupported(settings)?;
    Ok(config)
}

/// As in etcd: one that bcrypt does not know is told, and the default taken.
fn bcrypt_cost(settings: &Settings, notices: &mut Vec<Notice>) -> u32 {
    let given = settings.uint("bcrypt-cost");
    match u32::try_from(given).ok().filter(|cost| auth::COSTS.contains(cost)) {
        Some(cost) => cost,
        None => {
            notices.push(Notice::BcryptCost { given });
            auth::COST_DEFAULT
        }
    }
}

fn add_notices(settings: &Settings, name: &str, notices: &mut Vec<Notice>) {
    for (flag, _) in settings.changed() {
        if let Status::NoEffect(why) = flag.status {
            notices.push(Notice::NoEffect { name: flag.name, why });
        }
    }
    for (flag, given, used) in settings.raised() {
        notices.push(Notice::TooShort { name: flag.name, given, used });
    }
    if settings.urls("listen-client-http-urls").is_empty() {
        notices.push(Notice::SinglePort);
    }
    if name == "default" {
        notices.push(Notice::DefaultName { name: name.to_owned() });
    }
}

fn or(value: u64, default: u64) -> u64 {
    if value == 0 { default } else { value }
}

fn positive(duration: Duration) -> Option<Duration> {
    Some(duration).filter(|duration| !duration.is_zero())
}

fn unless_all(names: Vec<String>) -> Option<Vec<String>> {
    let all = names.iter().all(String::is_empty) || names.iter().any(|name| name == "*");
    if all { None } else { Some(names) }
}

fn size(settings: &Settings, flag: &str) -> Result<usize, ConfigError> {
    let n = settings.uint(flag);
    usize::try_from(n).map_err(|_| ConfigError::Invalid(format!("--{flag}: {n} is beyond this machine's addresses")))
}

/// A count where 0 (and for etcd anything below) stands for the default.
fn limit(settings: &Settings, flag: &str, default: usize) -> Result<usize, ConfigError> {
    match settings.int(flag) {
        n if n < 0 => Err(ConfigError::Invalid(format!("--{flag} must not be negative (set to {n})"))),
        0 => Ok(default),
        n => usize::try_from(n).map_err(|_| ConfigError::Invalid(format!("--{flag}: {n} is too large"))),
    }
}

fn initial_cluster_version(settings: &Settings) -> Result<(u64, u64), ConfigError> {
    match settings.text("initial-cluster-version").as_str() {
        "3.7" => Ok((3, 7)),
        "3.8" => Ok((3, 8)),
        other => Err(ConfigError::Invalid(format!(
            "--initial-cluster-version={other}: the cluster version can be held at 3.7 or 3.8"
        ))),
    }
}

fn auto_compaction(settings: &Settings) -> Result<AutoCompaction, ConfigError> {
    let (mode, retention) = (settings.text("auto-compaction-mode"), settings.text("auto-compaction-retention"));
    let retention = if retention.is_empty() { "0" } else { &retention };
    let number = retention.parse::<i64>().ok().filter(|n| *n >= 0);
    let invalid = |text: String| Err(ConfigError::Invalid(text));
    match (mode.as_str(), number) {
        ("", _) => invalid("undefined auto-compaction-mode".to_owned()),
        ("periodic" | "revision", Some(0)) => Ok(AutoCompaction::Off),
        ("revision", Some(revisions)) => Ok(AutoCompaction::Revision(revisions)),
        ("revision", None) => invalid(format!(
            "--auto-compaction-retention={retention}: with --auto-compaction-mode=revision it is a number of revisions"
        )),
        ("periodic", Some(hours)) => {
            let seconds = u64::try_from(hours).ok().and_then(|hours| hours.checked_mul(3600));
            match seconds.filter(|seconds| *seconds <= i64::MAX as u64 / 1_000_000_000) {
                Some(seconds) => Ok(AutoCompaction::Periodic(Duration::from_secs(seconds))),
                None => invalid(format!("--auto-compaction-retention={retention}: too many hours")),
            }
        }
        ("periodic", None) => match duration::parse(retention).map(u64::try_from) {
            Some(Ok(0)) => Ok(AutoCompaction::Off),
            Some(Ok(nanos)) => Ok(AutoCompaction::Periodic(Duration::from_nanos(nanos))),
            _ => invalid(format!("error parsing CompactionRetention: time: invalid duration {retention:?}")),
        },
        (other, _) => invalid(format!("unknown auto-compaction-mode {other:?}")),
    }
}
