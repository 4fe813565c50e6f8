//! Names against etcd's, and the layer against a real tonic-like service.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tower::{Layer, Service, ServiceExt, service_fn};

use super::server::Op;
use super::*;

fn testdata(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/metrics").join(name);
    fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
}

fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[test]
fn every_metric_of_etcd() {
    let metrics = Metrics::new(true);
    let ours: BTreeMap<&str, String> = metrics
        .descriptors()
        .iter()
        .map(|d| (d.name, format!("{} {} {}", d.name, d.kind, d.labels.join(",")).trim_end().to_owned()))
        .collect();
    let not_applicable = testdata("not-applicable.txt");
    let skipped: Vec<&str> = rows(&not_applicable).filter_map(|row| row.split(' ').next()).collect();
    let theirs = testdata("etcd-3.7-metrics.txt");
    let mut names = Vec::new();
    for row in rows(&theirs) {
        let name = row.split(' ').next().unwrap_or_default();
        names.push(name);
        match ours.get(name) {
            Some(own) => assert_eq!(own, row),
            None => assert!(skipped.contains(&name), "{name} is neither registered nor listed as not applicable"),
        }
    }
    for name in skipped {
        assert!(names.contains(&name), "{name} is no metric of etcd");
        assert!(!ours.contains_key(name), "{name} is registered after all");
    }
    // Under a prefix of their own, so that no dashboard takes them for etcd's.
    for name in ours.keys().filter(|name| !name.starts_with("lockgate_")) {
        assert!(names.contains(name), "{name} is not a metric of etcd");
    }
}

#[test]
fn a_feature_has_one_stage_at_a_time() {
    let gate = &Metrics::new(false).feature_gate;
    let row = |stage, value| featuregate::MetricRow { name: "F", stage, scope: "cluster", value };
    let shown = || {
        let families = prometheus::core::Collector::collect(gate.enabled_vec());
        let metrics = families.iter().flat_map(|family| family.get_metric());
        let stage = |m: &prometheus::proto::Metric| {
            m.get_label().iter().find(|label| label.name() == "stage").map(|label| label.value().to_owned())
        };
        metrics.map(|m| (stage(m).expect("a stage"), m.get_gauge().get_value())).collect::<Vec<_>>()
    };
    gate.set_enabled(&row("ALPHA", 0));
    assert_eq!(shown(), [("ALPHA".to_owned(), 0.0)]);
    gate.set_enabled(&row("BETA", 1));
    assert_eq!(shown(), [("BETA".to_owned(), 1.0)]);
}

#[test]
fn buckets_as_in_etcd() {
    let metrics = Metrics::new(true);
    metrics.server.apply_duration.observe(Op::Put, true, 0.0);
    metrics.server.request_duration.observe(Op::Put, true, 0.0);
    let text = metrics.render();
    for row in rows(&testdata("etcd-3.7-buckets.txt")) {
        let (name, bounds) = row.split_once(' ').expect("name and bounds");
        let mut seen: Vec<String> = Vec::new();
        for line in text.lines().filter(|line| line.starts_with(&format!("{name}_bucket{{"))) {
            let bound = line.split("le=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a bound");
            if !seen.iter().any(|known| known == bound) {
                seen.push(bound.to_owned());
            }
        }
        assert_eq!(numbers(&seen.join(" ")), numbers(bounds), "{name}");
    }
}

/// `1e+06` and `1000000` are one number; floating point noise is none.
fn numbers(text: &str) -> Vec<String> {
    let number = |word: &str| match word {
        "+Inf" => word.to_owned(),
        word => format!("{:.6e}", word.parse::<f64>().expect("a bound")),
    };
    text.split(' ').map(number).collect()
}

#[test]
fn text_format() {
    let metrics = Metrics::new(false);
    metrics.server.set_cluster_version("3.7");
    metrics.server.set_cluster_version("3.8");
    metrics.server.set_id(0x2e12);
    metrics.server.set_alarm(0x2e12, "NOSPACE", true);
    metrics.server.set_feature("AllAlpha", "ALPHA", false);
    metrics.server.apply_duration.observe(Op::DeleteRange, true, 0.0002);
    metrics.network.set_known_peers(1, [1, 2].into_iter());
    metrics.before_render(|metrics| metrics.mvcc.current_revision.set(7));
    let text = metrics.render();
    for line in [
        "# TYPE etcd_server_slow_apply_total counter",
        "# TYPE etcd_server_proposals_committed_total gauge",
        "etcd_cluster_version{cluster_version=\"3.8\"} 1",
        "etcd_server_version{server_version=\"3.8.0\"} 1",
        "etcd_server_id{server_id=\"2e12\"} 1",
        "etcd_debugging_server_alarms{alarm_type=\"NOSPACE\",server_id=\"2e12\"} 1",
        "etcd_server_feature_enabled{name=\"AllAlpha\",stage=\"ALPHA\"} 0",
        "etcd_server_apply_duration_seconds_count{op=\"DeleteRange\",success=\"true\",version=\"v3\"} 1",
        "etcd_network_known_peers{Local=\"1\",Remote=\"2\"} 1",
        "etcd_debugging_mvcc_current_revision 7",
        "promhttp_metric_handler_requests_total{code=\"200\"} 0",
        "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Put\",grpc_service=\"etcdserverpb.KV\",grpc_type=\"unary\"} 0",
    ] {
        assert!(text.lines().any(|l| l == line), "no line {line:?}");
    }
    assert!(!text.contains("3.7"), "the old cluster version is still shown");
    assert!(!text.contains("grpc_server_handling_seconds"), "only extensive metrics have it");
    #[cfg(target_os = "linux")]
    for name in ["process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds", "os_fd_used"] {
        let value = text.lines().find_map(|l| l.strip_prefix(name)?.trim().parse::<f64>().ok());
        assert!(value.is_some_and(|value| value >= 0.0), "{name} is {value:?}");
    }
}

type Frames = Vec<Result<Frame<Bytes>, Infallible>>;
type TestBody = StreamBody<futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

fn body(frames: Frames) -> TestBody {
    StreamBody::new(futures_util::stream::iter(frames))
}

fn message(length: usize) -> Bytes {
    let mut wire = vec![0];
    wire.extend_from_slice(&(length as u32).to_be_bytes());
    wire.resize(5 + length, 1);
    Bytes::from(wire)
}

fn status(code: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(http::HeaderName::from_static("grpc-status"), HeaderValue::from_static(code))])
}

/// One call through the layer; the service reads its request and answers with these frames.
async fn call(metrics: &Metrics, path: &str, headers: HeaderMap, answer: Frames, read_answer: bool) {
    let layer = grpc::GrpcLayer::new(metrics.grpc.clone(), grpc::Guard::open());
    let answer = std::sync::Mutex::new(Some((headers, answer)));
    let service = service_fn(|request: Request<grpc::Counted<TestBody>>| async {
        let _ = request.into_body().collect().await;
        let (headers, frames) = answer.lock().expect("no panic").take().expect("one call");
        let mut response = Response::new(body(frames));
        *response.headers_mut() = headers;
        Ok::<_, Infallible>(response)
    });
    let request = Request::builder()
        .uri(path)
        .header("client-api-version", "3.7")
        .body(body(vec![Ok(Frame::data(message(10)))]))
        .expect("a request");
    let response = layer.layer(service).oneshot(request).await.expect("an answer");
    if read_answer {
        let _ = response.into_body().collect().await;
    }
}

#[tokio::test]
async fn layer_counts_calls() {
    let metrics = Metrics::new(true);
    let put = "/etcdserverpb.KV/Put";
    let good = || vec![Ok(Frame::data(message(20))), Ok(Frame::trailers(status("0")))];
    call(&metrics, put, HeaderMap::new(), good(), true).await;
    call(&metrics, put, HeaderMap::new(), vec![Ok(Frame::trailers(status("8")))], true).await;
    call(&metrics, put, status("3"), Vec::new(), true).await;
    call(&metrics, put, HeaderMap::new(), good(), false).await;
    call(&metrics, "/etcdserverpb.Watch/Watch", HeaderMap::new(), good(), true).await;
    call(&metrics, "/no.Service/Method", HeaderMap::new(), good(), true).await;
    let text = metrics.render();
    let labels = "grpc_method=\"Put\",grpc_service=\"etcdserverpb.KV\",grpc_type=\"unary\"";
    for (line, count) in [
        (format!("grpc_server_started_total{{{labels}}}"), 4),
        (format!("grpc_server_handled_total{{grpc_code=\"OK\",{labels}}}"), 1),
        (format!("grpc_server_handled_total{{grpc_code=\"ResourceExhausted\",{labels}}}"), 1),
        (format!("grpc_server_handled_total{{grpc_code=\"InvalidArgument\",{labels}}}"), 1),
        (format!("grpc_server_handled_total{{grpc_code=\"Canceled\",{labels}}}"), 1),
        (format!("grpc_server_msg_received_total{{{labels}}}"), 4),
        (format!("grpc_server_msg_sent_total{{{labels}}}"), 1),
        (format!("grpc_server_handling_seconds_count{{{labels}}}"), 4),
        ("etcd_network_client_grpc_received_bytes_total".to_owned(), 50),
        ("etcd_network_client_grpc_sent_bytes_total".to_owned(), 40),
        ("etcd_server_client_requests_total{client_api_version=\"3.7\",type=\"unary\"}".to_owned(), 4),
        ("etcd_server_client_requests_total{client_api_version=\"3.7\",type=\"stream\"}".to_owned(), 1),
    ] {
        let wanted = format!("{line} {count}");
        assert!(text.lines().any(|l| l == wanted), "no line {wanted:?}");
    }
}

/// A call ends at the deadline of its client, whether its handler has answered yet or not.
#[tokio::test(start_paused = true)]
async fn calls_end_at_their_deadline() {
    let metrics = Metrics::new(false);
    let layer = grpc::GrpcLayer::new(metrics.grpc.clone(), grpc::Guard::open());
    let ask = async |path: &str, timeout: &str, answers: bool| {
        let service = service_fn(move |_: Request<grpc::Counted<TestBody>>| async move {
            if !answers {
                std::future::pending::<()>().await;
            }
            let frames = futures_util::stream::iter([Ok::<_, Infallible>(Frame::data(message(20)))]);
            Ok::<_, Infallible>(Response::new(StreamBody::new(frames.chain(futures_util::stream::pending()))))
        });
        let request = Request::builder().uri(path).header("grpc-timeout", timeout).body(body(Vec::new()));
        let call = async {
            let response = layer.layer(service).oneshot(request.expect("a request")).await.expect("an answer");
            let (head, body) = response.into_parts();
            let body = body.collect().await.expect("a body");
            let mut headers = head.headers;
            headers.extend(body.trailers().cloned().unwrap_or_default());
            let status = tonic::Status::from_header_map(&headers).expect("a status");
            (status.code(), status.message().to_owned(), body.to_bytes().len())
        };
        tokio::time::timeout(std::time::Duration::from_secs(3600), call).await.expect("the call ends")
    };
    let exceeded = |bytes| (tonic::Code::DeadlineExceeded, "context deadline exceeded".to_owned(), bytes);
    assert_eq!(ask("/etcdserverpb.KV/Put", "5S", false).await, exceeded(0));
    assert_eq!(ask("/etcdserverpb.KV/Put", "0S", false).await, exceeded(0));
    assert_eq!(ask("/etcdserverpb.Watch/Watch", "300m", true).await, exceeded(25));
    let text = metrics.render();
    for (count, labels) in [
        (2, "grpc_code=\"DeadlineExceeded\",grpc_method=\"Put\",grpc_service=\"etcdserverpb.KV\",grpc_type=\"unary\""),
        (
            1,
            "grpc_code=\"DeadlineExceeded\",grpc_method=\"Watch\",grpc_service=\"etcdserverpb.Watch\",grpc_type=\"bidi_stream\"",
        ),
    ] {
        let line = format!("grpc_server_handled_total{{{labels}}} {count}");
        assert!(text.lines().any(|l| l == line), "no line {line:?}");
    }
}

/// A stop waits for calls in flight, but not for streams, nor for calls that wait for other clients.
#[tokio::test]
async fn unary_calls_are_in_flight_until_they_end() {
    let metrics = Metrics::new(false);
    let layer = grpc::GrpcLayer::new(metrics.grpc.clone(), grpc::Guard::open());
    for (path, in_flight) in [("/etcdserverpb.KV/Put", 1), ("/etcdserverpb.Watch/Watch", 0), ("/v3lockpb.Lock/Lock", 0)]
    {
        let service = service_fn(|_: Request<grpc::Counted<TestBody>>| {
            std::future::pending::<Result<Response<TestBody>, Infallible>>()
        });
        let request = Request::builder().uri(path).body(body(Vec::new())).expect("a request");
        let mut call = Box::pin(layer.layer(service).oneshot(request));
        assert!((&mut call).now_or_never().is_none());
        assert_eq!(metrics.grpc.in_flight(), in_flight, "{path}");
        drop(call);
        assert_eq!(metrics.grpc.in_flight(), 0, "{path}");
    }
}

/// The layer fits tonic's routes and axum's router, and sees their answers.
#[tokio::test]
async fn layer_on_tonic_and_axum() {
    let metrics = Metrics::new(false);
    let layer = grpc::GrpcLayer::new(metrics.grpc.clone(), grpc::Guard::open());
    let (_, health) = tonic_health::server::health_reporter();
    let routes = tonic::service::Routes::new(health);
    let request = || {
        Request::builder()
            .method("POST")
            .uri("/grpc.health.v1.Health/Check")
            .header("content-type", "application/grpc")
            .body(tonic::body::Body::new(http_body_util::Full::new(message(0))))
            .expect("a request")
    };
    let response = layer.layer(routes.clone()).oneshot(request()).await.expect("an answer");
    let answer = response.into_body().collect().await.expect("a body");
    assert_eq!(answer.trailers().and_then(|t| t.get("grpc-status")), Some(&HeaderValue::from_static("0")));
    let router = routes.into_axum_router().layer(layer);
    let response = router.oneshot(request().map(axum::body::Body::new)).await.expect("an answer");
    response.into_body().collect().await.expect("a body");
    let text = metrics.render();
    let labels = "grpc_method=\"Check\",grpc_service=\"grpc.health.v1.Health\",grpc_type=\"unary\"";
    for line in [
        format!("grpc_server_started_total{{{labels}}} 2"),
        format!("grpc_server_handled_total{{grpc_code=\"OK\",{labels}}} 2"),
        format!("grpc_server_msg_received_total{{{labels}}} 2"),
        format!("grpc_server_msg_sent_total{{{labels}}} 2"),
    ] {
        assert!(text.lines().any(|l| l == line), "no line {line:?}");
    }
}

/// Prints the cost of the layer over a bare service; run with `--release -- --ignored --nocapture`.
#[tokio::test]
#[ignore = "a measurement"]
async fn layer_cost() {
    const CALLS: u32 = 1_000_000;
    let metrics = Metrics::new(false);
    let request = || {
        let body = http_body_util::Full::new(message(100));
        Request::builder().uri("/etcdserverpb.KV/Put").header("client-api-version", "3.7").body(body).expect("valid")
    };
    let answer = || Ok::<_, Infallible>(Response::new(http_body_util::Full::new(message(30))));
    let mut bare = service_fn(|request: Request<http_body_util::Full<Bytes>>| async move {
        let _ = request.into_body().collect().await;
        answer()
    });
    let mut layered = grpc::GrpcLayer::new(metrics.grpc.clone(), grpc::Guard::open()).layer(service_fn(
        |request: Request<grpc::Counted<http_body_util::Full<Bytes>>>| async move {
            let _ = request.into_body().collect().await;
            answer()
        },
    ));
    let start = Instant::now();
    for _ in 0..CALLS {
        let response = bare.call(request()).await.expect("an answer");
        let _ = response.into_body().collect().await;
    }
    let without = start.elapsed();
    let start = Instant::now();
    for _ in 0..CALLS {
        let response = layered.call(request()).await.expect("an answer");
        let _ = response.into_body().collect().await;
    }
    let with = start.elapsed();
    println!("a call: bare {:?}, layered {:?}", without / CALLS, with / CALLS);
}
