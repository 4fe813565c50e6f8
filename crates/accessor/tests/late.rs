//! Rows that are late by minutes and an API that is unavailable for minutes, in virtual time and with a fake API.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use accessor::{Gates, Kube, NotReady, Source};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::{
    sync::broadcast,
    time::{Instant, sleep},
};

const MINUTE: Duration = Duration::from_secs(60);

/// An API with one object. A write need not reach the watches, as if they were silently dead.
#[derive(Clone)]
struct Api {
    /// `None` if the API is unavailable.
    rows: Arc<Mutex<Option<Vec<&'static str>>>>,
    events: broadcast::Sender<()>,
    looks: Arc<Mutex<u32>>,
}

impl Api {
    fn new(rows: Option<Vec<&'static str>>) -> Api {
        Api { rows: Arc::new(Mutex::new(rows)), events: broadcast::channel(8).0, looks: Arc::default() }
    }

    fn kube(&self) -> Kube {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = api.answer(&request);
            async move { Ok::<_, Infallible>(answer) }
        });
        kube::Client::new(service, "default").into()
    }

    /// Writes the only row. Watches get an event if `notify` is true.
    fn write(&self, row: &'static str, notify: bool) {
        *self.rows.lock().unwrap() = Some(vec![row]);
        if notify {
            let _ = self.events.send(());
        }
    }

    fn object(rows: &[&str]) -> Value {
        let row = |row: &&str| match row.split_once(" +") {
            Some((version, gate)) => json!({"version": version, "enabled": [{"name": gate}], "disabled": []}),
            None => json!({"version": row, "enabled": [], "disabled": [{"name": "A"}]}),
        };
        let rows: Vec<Value> = rows.iter().map(row).collect();
        json!({"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate", "metadata": {"name": "cluster"},
               "spec": {}, "status": {"featureGates": rows}})
    }

    fn answer(&self, request: &Request<Body>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let rows = self.rows.lock().unwrap().clone();
        let Some(rows) = rows else {
            let status = json!({"kind": "Status", "status": "Failure", "message": "no endpoints", "code": 503});
            let mut answer = Response::new(Full::from(status.to_string()).boxed_unsync());
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return answer;
        };
        if !request.uri().query().unwrap_or_default().contains("watch=true") {
            *self.looks.lock().unwrap() += 1;
            return Response::new(Full::from(Api::object(&rows).to_string()).boxed_unsync());
        }
        let events = futures_util::stream::unfold(self.events.subscribe(), |mut events| async {
            events.recv().await.ok()?;
            let event = json!({"type": "MODIFIED", "object": Api::object(&[])});
            Some((Ok(Frame::data(Bytes::from(format!("{event}\n")))), events))
        });
        Response::new(StreamBody::new(events).boxed_unsync())
    }
}

fn start(api: &Api) -> Gates {
    Gates::builder("1.4.0").need(["A"]).notify().start(api.kube()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_row_may_be_late_by_minutes() {
    let api = Api::new(Some(vec!["1.3.0"]));
    let gates = start(&api);
    // The wait ends in time, and the reason names the existing rows.
    let begin = Instant::now();
    let why = gates.ready(MINUTE).await.unwrap_err();
    assert_eq!(
        (why, begin.elapsed()),
        (NotReady::NoRow { version: "1.4.0".into(), rows: vec!["1.3.0".into()] }, MINUTE)
    );
    let (late, row) = (api.clone(), "1.4.0 +A");
    tokio::spawn(async move {
        sleep(7 * MINUTE).await;
        late.write(row, true);
    });
    let snapshot = gates.ready(60 * MINUTE).await.unwrap();
    assert!(snapshot.is_enabled("A"));
    assert!((8 * MINUTE..8 * MINUTE + Duration::from_secs(1)).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    // One look at the start, two periodic ones in eight minutes, and one for the event.
    assert!(*api.looks.lock().unwrap() <= 4, "{} looks", api.looks.lock().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_silently_dead_watch_delays_a_row_and_does_not_lose_it() {
    let api = Api::new(Some(vec!["1.3.0"]));
    let gates = start(&api);
    let begin = Instant::now();
    assert!(gates.ready(MINUTE).await.is_err());
    api.write("1.4.0 +A", false);
    assert!(gates.ready(60 * MINUTE).await.unwrap().is_enabled("A"));
    assert!(begin.elapsed() <= 5 * MINUTE + Duration::from_secs(1), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_api_is_retried_with_pauses() {
    let api = Api::new(None);
    let gates = start(&api);
    let begin = Instant::now();
    let why = gates.ready(10 * MINUTE).await.unwrap_err();
    assert!(matches!(why, NotReady::NoApi(_)), "{why}");
    api.write("1.4.0 +A", true);
    let back = Instant::now();
    assert!(gates.ready(10 * MINUTE).await.unwrap().is_enabled("A"));
    assert!(back.elapsed() <= Duration::from_secs(10), "{:?}", back.elapsed());
    assert!(begin.elapsed() < 11 * MINUTE);
}

#[tokio::test(start_paused = true)]
async fn a_cache_is_used_while_the_api_is_unavailable() {
    let dir = harness::tempdir();
    let path = dir.path().join("gates.json");
    let cached = |api: &Api| Gates::builder("1.4.0").need(["A"]).cache(&path).notify().start(api.kube()).unwrap();
    let api = Api::new(Some(vec!["1.4.0 +A"]));
    assert_eq!(cached(&api).ready(MINUTE).await.unwrap().source, Source::Cluster);

    // The API is unavailable at the next start: the cache is used, marked as stale.
    *api.rows.lock().unwrap() = None;
    let gates = cached(&api);
    let snapshot = gates.ready(MINUTE).await.unwrap();
    assert_eq!((snapshot.source, snapshot.is_enabled("A")), (Source::Cache, true));
    let state = gates.subscribe().borrow().clone().unwrap();
    assert!(state.stale.is_some_and(|why| why.contains("no endpoints")));
    assert!(gates.metrics().contains("feature_gates_stale 1\n") && gates.metrics().contains("source=\"cache\""));
    // Minutes later the API is back, and the gate is off.
    sleep(9 * MINUTE).await;
    let mut states = gates.subscribe();
    api.write("1.4.0", true);
    let fresh = |state: &Result<accessor::State, NotReady>| state.as_ref().is_ok_and(|state| state.stale.is_none());
    let state = tokio::time::timeout(MINUTE, states.wait_for(fresh)).await.unwrap().unwrap().clone().unwrap();
    assert_eq!((state.snapshot.source, state.snapshot.is_enabled("A")), (Source::Cluster, false));
    assert!(gates.metrics().contains("feature_enabled{name=\"A\",version=\"1.4.0\"} 0\n"));
}
