//! Refusals: etcd's rules in etcd's order and words, then what this version cannot do.

use std::{net::IpAddr, time::Duration};

use super::error::ConfigError;
use super::settings::Settings;
use super::table::Status;
use super::url::{self, Url};

const MAX_ELECTION_MS: u64 = 50_000;
/// Leases count in whole seconds.
const LEASE_CHECKPOINT_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// etcd's `Config.Validate`, after the logging flags.
pub(super) fn before_build(settings: &Settings, from_file: bool) -> Result<(), ConfigError> {
    let invalid = |text: String| Err(ConfigError::Invalid(text));
    if settings.text("discovery-fallback") == "proxy" {
        return invalid("v2 proxy is deprecated, and --discovery-fallback can't be configured as \"proxy\"".into());
    }
    for flag in ["listen-peer-urls", "listen-client-urls", "listen-client-http-urls", "listen-metrics-urls"] {
        check_bind_urls(&settings.urls(flag))?;
    }
    let peers = settings.urls("initial-advertise-peer-urls");
    if let Some(url) = without_host(&peers) {
        let all = url::join(&peers);
        return invalid(format!(
            "--initial-advertise-peer-urls {all:?} must be \"host:port\" (unexpected empty host ({url}))"
        ));
    }
    let clients = settings.urls("advertise-client-urls");
    if let Some(url) = without_host(&clients) {
        return invalid(format!(
            "--advertise-client-urls {:?} must be in the format \"host:port\", \"unix:/path/to/socket\" or \
             \"unixs:/path/to/socket\" (unexpected empty host ({url}))",
            url::join(&clients)
        ));
    }
    check_bootstrap_flags(settings)?;
    check_timing(settings)?;
    if !from_file && settings.is_set("listen-client-urls") && !settings.is_set("advertise-client-urls") {
        return Err(ConfigError::UnsetAdvertiseClientUrls);
    }
    if settings.duration("compact-hash-check-time")?.is_zero() {
        return invalid("--compact-hash-check-time must be >0 (set to 0s)".into());
    }
    let interval = settings.duration("lease-checkpoint-interval")?;
    if interval < LEASE_CHECKPOINT_INTERVAL_MIN {
        return invalid(format!("--lease-checkpoint-interval must be at least 1s (set to {interval:?})"));
    }
    check_tls_versions(settings)?;
    check_shared_ports(settings)
}

/// Every changed flag that this version refuses, and every URL that needs TLS.
pub(super) fn refuse_unsupported(settings: &Settings) -> Result<(), ConfigError> {
    for (flag, _) in settings.changed() {
        if let Status::Refused(why) = flag.status {
            return Err(ConfigError::Refused { flag: flag.name, why });
        }
    }
    for flag in [
        "listen-peer-urls",
        "listen-client-urls",
        "listen-client-http-urls",
        "listen-metrics-urls",
        "initial-advertise-peer-urls",
        "advertise-client-urls",
    ] {
        if let Some(url) = settings.urls(flag).iter().find(|url| url.is_tls()) {
            return Err(ConfigError::TlsUrl { flag, url: url.to_string() });
        }
    }
    Ok(())
}

fn check_bind_urls(urls: &[Url]) -> Result<(), ConfigError> {
    for url in urls.iter().filter(|url| !url.is_unix()) {
        if url.host != "localhost" && url.host.parse::<IpAddr>().is_err() {
            return Err(ConfigError::Invalid(format!("expected IP in URL for binding ({url})")));
        }
    }
    Ok(())
}

fn without_host(urls: &[Url]) -> Option<&Url> {
    urls.iter().find(|url| !url.is_unix() && url.host.is_empty())
}

fn check_bootstrap_flags(settings: &Settings) -> Result<(), ConfigError> {
    let srv = !settings.text("discovery-srv").is_empty() || !settings.text("discovery-srv-name").is_empty();
    let endpoints = !settings.list("discovery-endpoints").is_empty();
    let cluster = settings.is_set("initial-cluster") && !settings.text("initial-cluster").is_empty();
    if [srv, endpoints, cluster].into_iter().filter(|set| *set).count() > 1 {
        return Err(ConfigError::Invalid(
            "multiple discovery or bootstrap flags are set. Choose one of \"initial-cluster\", \
             \"discovery-endpoints\" or \"discovery-srv\""
                .into(),
        ));
    }
    if settings.text("discovery-token").is_empty() == endpoints {
        return Err(ConfigError::Invalid("both --discovery-token and --discovery-endpoints must be set".into()));
    }
    Ok(())
}

fn check_timing(settings: &Settings) -> Result<(), ConfigError> {
    let (tick, election) = (settings.uint("heartbeat-interval"), settings.uint("election-timeout"));
    let text = if tick == 0 {
        format!("--heartbeat-interval must be >0 (set to {tick}ms)")
    } else if election == 0 {
        format!("--election-timeout must be >0 (set to {election}ms)")
    } else if tick.saturating_mul(5) > election {
        format!("--election-timeout[{election}ms] should be at least as 5 times as --heartbeat-interval[{tick}ms]")
    } else if election > MAX_ELECTION_MS {
        format!("--election-timeout[{election}ms] is too long, and should be set less than {MAX_ELECTION_MS}ms")
    } else {
        return Ok(());
    };
    Err(ConfigError::Invalid(text))
}

fn check_tls_versions(settings: &Settings) -> Result<(), ConfigError> {
    let (min, max) = (settings.text("tls-min-version"), settings.text("tls-max-version"));
    if !max.is_empty() && min > max {
        return Err(ConfigError::Invalid(format!("min version ({min}) is greater than max version ({max})")));
    }
    if min == "TLS1.3" && !settings.list("cipher-suites").is_empty() {
        return Err(ConfigError::Invalid("cipher suites cannot be configured when only TLS1.3 is enabled".into()));
    }
    Ok(())
}

/// HTTP-only listeners need an address of their own. Each listener with port 0 gets one.
fn check_shared_ports(settings: &Settings) -> Result<(), ConfigError> {
    let clients = settings.urls("listen-client-urls");
    let same = |a: &Url, b: &Url| (&a.host, a.port) == (&b.host, b.port) && !a.has_port_zero();
    for url in &settings.urls("listen-client-http-urls") {
        if clients.iter().any(|client| same(client, url)) {
            return Err(ConfigError::Invalid(format!(
                "cannot bind both --listen-client-urls and --listen-client-http-urls on the same url {url}"
            )));
        }
    }
    Ok(())
}
