//! `/livez` and `/readyz` with a path for every check.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::any;

use super::{Alarm, App, Health, answer, query};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    DataCorruption,
    SerializableRead,
    LinearizableRead,
    NonLearner,
}

const LIVEZ: &[Check] = &[Check::SerializableRead];
const READYZ: &[Check] = &[Check::DataCorruption, Check::SerializableRead, Check::LinearizableRead, Check::NonLearner];

pub(super) fn add_routes<H: Health>(mut router: Router<App<H>>) -> Router<App<H>> {
    for (kind, checks) in [("livez", LIVEZ), ("readyz", READYZ)] {
        let handle = move |State(app), method, RawQuery(query)| all::<H>(app, kind, checks, method, query);
        router = router.route(&format!("/{kind}"), any(handle));
        for check in checks {
            let handle = move |State(app), method, RawQuery(query)| one::<H>(app, kind, *check, method, query);
            router = router.route(&format!("/{kind}/{}", check.name()), any(handle));
        }
    }
    router
}

async fn all<H: Health>(
    app: App<H>,
    kind: &'static str,
    checks: &'static [Check],
    method: Method,
    raw_query: Option<String>,
) -> Response {
    let pairs = query::parse(raw_query.as_deref());
    let excluded = query::values(&pairs, "exclude");
    for name in excluded.iter().filter(|name| !checks.iter().any(|check| check.name() == **name)) {
        tracing::warn!("missing-health-checks" = name, "some health checks cannot be excluded");
    }
    let checks: Vec<Check> = checks.iter().copied().filter(|check| !excluded.contains(&check.name())).collect();
    run(&app, kind, &checks, method, is_verbose(&pairs)).await
}

async fn one<H: Health>(
    app: App<H>,
    kind: &'static str,
    check: Check,
    method: Method,
    raw_query: Option<String>,
) -> Response {
    let pairs = query::parse(raw_query.as_deref());
    run(&app, kind, &[check], method, is_verbose(&pairs)).await
}

fn is_verbose(pairs: &[(String, String)]) -> bool {
    pairs.iter().any(|(key, _)| key == "verbose")
}

async fn run<H: Health>(app: &App<H>, kind: &str, checks: &[Check], method: Method, verbose: bool) -> Response {
    if method != Method::GET {
        tracing::warn!(path = kind, "status-code" = 405, "Health request error");
        return answer::method_not_allowed();
    }
    let mut healthy = true;
    let mut reason = String::new();
    for check in checks {
        let outcome = check.run(&*app.health).await;
        app.metrics.health.record(kind, check.name(), outcome.is_ok());
        match outcome {
            Ok(()) => reason += &format!("[+]{} ok\n", check.name()),
            Err(err) => {
                healthy = false;
                reason += &format!("[-]{} failed: {err}\n", check.name());
            }
        }
    }
    if !healthy {
        tracing::error!(path = kind, reason, "status-code" = 503, "Health check error");
        return answer::error(StatusCode::SERVICE_UNAVAILABLE, &reason);
    }
    tracing::debug!(path = kind, reason, "status-code" = 200, "Health check OK");
    answer::plain(if verbose { reason + "ok\n" } else { "ok\n".to_owned() })
}

impl Check {
    fn name(self) -> &'static str {
        match self {
            Check::DataCorruption => "data_corruption",
            Check::SerializableRead => "serializable_read",
            Check::LinearizableRead => "linearizable_read",
            Check::NonLearner => "non_learner",
        }
    }

    async fn run(self, health: &impl Health) -> Result<(), String> {
        match self {
            Check::DataCorruption if health.alarms().iter().any(|(_, alarm)| *alarm == Alarm::Corrupt) => {
                Err("alarm activated: CORRUPT".to_owned())
            }
            Check::NonLearner if health.is_learner() => Err("not supported for learner".to_owned()),
            Check::SerializableRead => health.serializable_read().await,
            Check::LinearizableRead => health.linearizable_read().await,
            Check::DataCorruption | Check::NonLearner => Ok(()),
        }
    }
}
