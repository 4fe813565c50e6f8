//! `/health`: alarms, leader, and a read, in this order.

use axum::extract::{RawQuery, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;

use super::{Alarm, App, Health, answer, query};

pub(super) async fn handle<H: Health>(
    State(app): State<App<H>>,
    method: Method,
    RawQuery(raw_query): RawQuery,
) -> Response {
    if method != Method::GET {
        tracing::warn!("status-code" = 405, "/health error");
        return answer::method_not_allowed();
    }
    let pairs = query::parse(raw_query.as_deref());
    let excluded = query::values(&pairs, "exclude");
    let serializable = pairs.iter().find(|(key, _)| key == "serializable").is_some_and(|(_, value)| value == "true");
    match check(&*app.health, &excluded, serializable).await {
        Ok(()) => {
            app.metrics.health.success.inc();
            tracing::debug!("status-code" = 200, "/health OK");
            answer::bare(r#"{"health":"true","reason":""}"#.to_owned())
        }
        Err(reason) => {
            app.metrics.health.failures.inc();
            let output = serde_json::json!({ "health": "false", "reason": reason }).to_string();
            tracing::warn!(output, "status-code" = 503, "/health error");
            answer::error(StatusCode::SERVICE_UNAVAILABLE, &output)
        }
    }
}

async fn check(health: &impl Health, excluded: &[&str], serializable: bool) -> Result<(), String> {
    let raised = health.alarms().into_iter().find(|(_, alarm)| !excluded.contains(&alarm.name().as_str()));
    if let Some((_, alarm)) = raised {
        let name = if matches!(alarm, Alarm::Other(_)) { "UNKNOWN".to_owned() } else { alarm.name() };
        return Err(format!("ALARM {name}"));
    }
    if !serializable && health.leader().is_none() {
        return Err("RAFT NO LEADER".to_owned());
    }
    let read = if serializable { health.serializable_read().await } else { health.linearizable_read().await };
    read.map_err(|err| format!("RANGE ERROR:{err}"))
}
