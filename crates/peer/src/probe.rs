//! Asks a peer now and then whether it is there, how far away it is, and what time it has.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::Full;
use membership::MemberId;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::{clock, shared::Shared, url::UrlPicker};

pub(crate) const PATH: &str = "/raft/probing";
const ANSWER_BYTES_MAX: usize = 4 << 10;
/// Unhealthy peers are complained about this often, drifting clocks less.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(5);
const DRIFT_COMPLAINT_INTERVAL: Duration = Duration::from_secs(30);
const DRIFT_MAX: Duration = Duration::from_secs(1);

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Health {
    #[serde(rename = "OK")]
    pub ok: bool,
    #[serde(rename = "Now")]
    pub now: String,
}

/// The body of an answer to a probe.
pub(crate) fn answer(now: SystemTime) -> String {
    format!("{{\"OK\":true,\"Now\":\"{}\"}}\n", clock::format(now))
}

/// How far the clock that said `theirs` is from ours, half a round trip later.
pub(crate) fn drift(ours: SystemTime, theirs: SystemTime, round_trip: Duration) -> Duration {
    let theirs = theirs + round_trip / 2;
    ours.duration_since(theirs).unwrap_or_else(|error| error.duration())
}

pub(crate) async fn run(shared: Arc<Shared>, to: MemberId, picker: Arc<UrlPicker>) {
    let mut ticks = interval(shared.options.probe_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let (mut complained, mut complained_of_drift) = (None, None);
    loop {
        ticks.tick().await;
        match probe(&shared, &picker).await {
            Ok((round_trip, drift)) => {
                shared.observer.round_trip(to, round_trip);
                if drift > DRIFT_MAX && is_due(&mut complained_of_drift, DRIFT_COMPLAINT_INTERVAL) {
                    tracing::warn!(
                        remote_peer_id = %to,
                        clock_drift = ?drift,
                        rtt = ?round_trip,
                        "prober found high clock drift"
                    );
                }
            }
            Err(error) => {
                if is_due(&mut complained, COMPLAINT_INTERVAL) {
                    tracing::warn!(remote_peer_id = %to, error, "prober detected unhealthy status");
                }
            }
        }
    }
}

fn is_due(last: &mut Option<Instant>, interval: Duration) -> bool {
    let due = last.is_none_or(|last| last.elapsed() >= interval);
    if due {
        *last = Some(Instant::now());
    }
    due
}

async fn probe(shared: &Shared, picker: &UrlPicker) -> Result<(Duration, Duration), String> {
    let url = picker.pick();
    let request = shared.request(Method::GET, &url, PATH, Full::new(Bytes::new()));
    let start = Instant::now();
    let timeout = shared.options.probe_interval;
    let answer = shared.client.request(&url, request, ANSWER_BYTES_MAX, timeout).await.map_err(|e| e.to_string())?;
    let round_trip = start.elapsed();
    if answer.status != StatusCode::OK {
        return Err(format!("got unexpected HTTP status code {} from {url}{PATH}", answer.status));
    }
    let health: Health = serde_json::from_slice(&answer.body).map_err(|e| format!("{url} sent no health: {e}"))?;
    if !health.ok {
        return Err(format!("{url} says that it is not well"));
    }
    let theirs = clock::parse(&health.now).ok_or_else(|| format!("{url} sent {:?} as its time", health.now))?;
    Ok((round_trip, drift(SystemTime::now(), theirs, round_trip)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_has_no_sign_and_knows_the_way() {
        let ours = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let round_trip = Duration::from_millis(200);
        assert_eq!(drift(ours, ours - Duration::from_millis(100), round_trip), Duration::ZERO);
        assert_eq!(drift(ours, ours + Duration::from_secs(2), round_trip), Duration::from_millis(2100));
        let health: Health = serde_json::from_str(&answer(ours)).unwrap();
        assert!(health.ok);
        assert_eq!(clock::parse(&health.now), Some(ours));
    }
}
