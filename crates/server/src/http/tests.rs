//! Answers against those recorded from etcd 3.7.3, over a fake server.

use std::path::Path;
use std::sync::LazyLock;

use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::*;

#[derive(Default)]
struct Fake {
    alarms: Vec<(u64, Alarm)>,
    leaderless: bool,
    learner: bool,
    read_error: Option<&'static str>,
    undecided: bool,
}

impl Health for Fake {
    async fn serializable_read(&self) -> Result<(), String> {
        Ok(())
    }

    async fn linearizable_read(&self) -> Result<(), String> {
        self.read_error.map_or(Ok(()), |err| Err(err.to_owned()))
    }

    fn alarms(&self) -> Vec<(u64, Alarm)> {
        self.alarms.clone()
    }

    fn leader(&self) -> Option<u64> {
        (!self.leaderless).then_some(1)
    }

    fn is_learner(&self) -> bool {
        self.learner
    }

    fn versions(&self) -> Versions {
        let decided = |text: &str| (!self.undecided).then(|| text.to_owned());
        Versions { server: "X.Y.Z".into(), cluster: decided("X.Y.0"), storage: decided("X.Y.0") }
    }
}

fn app(fake: Fake, access: Access) -> Router {
    /// Made once: a thousand counters take their time in a debug build.
    static METRICS: LazyLock<Arc<Metrics>> = LazyLock::new(|| Arc::new(Metrics::new(false)));
    finish(routes(Arc::new(fake), METRICS.clone()), access)
}

/// Status line, headers and sorted lines of the body, as in testdata/http.
async fn ask(router: Router, method: &str, target: &str, extra: &[(&str, &str)]) -> String {
    let mut request = Request::builder().method(method).uri(target).header("host", "127.0.0.1:2379");
    for (name, value) in extra {
        request = request.header(*name, *value);
    }
    let response = router.oneshot(request.body(Body::empty()).expect("a request")).await.expect("an answer");
    let mut text = format!("{}\n", response.status().as_u16());
    let mut headers: Vec<String> = Vec::new();
    for (name, value) in response.headers() {
        if name != "content-length" {
            headers.push(format!("{name}: {}\n", value.to_str().expect("a text header")));
        }
    }
    headers.sort();
    text.extend(headers);
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    let body = if method == "HEAD" { "" } else { std::str::from_utf8(&body).expect("text") };
    let mut lines: Vec<&str> = body.split_inclusive('\n').collect();
    lines.sort_unstable();
    for line in lines {
        text += &format!("{line:?}\n");
    }
    text
}

#[tokio::test]
async fn answers_of_etcd() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/http/etcd-3.7-answers.txt");
    let golden = std::fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
    let mut blocks = 0;
    for block in golden.split("\n\n").filter(|block| block.contains("## ")) {
        let block = &block[block.find("## ").unwrap_or(0)..];
        let (title, expected) = block.split_once('\n').expect("a title and an answer");
        let mut words = title.split(' ').skip(1);
        let (state, method, target) = (words.next(), words.next(), words.next());
        let alarms = match state {
            Some("nospace") => vec![(1, Alarm::NoSpace)],
            Some("corrupt") => vec![(1, Alarm::Corrupt)],
            _ => Vec::new(),
        };
        let router = app(Fake { alarms, ..Fake::default() }, Access::default());
        let actual = ask(router, method.expect("a method"), target.expect("a path"), &[]).await;
        assert_eq!(actual.trim_end(), expected.trim_end(), "{title}");
        blocks += 1;
    }
    assert!(blocks > 40, "only {blocks} answers in the golden file");
}

/// States that are hard to bring a real server into; texts from its source.
#[tokio::test]
async fn unhealthy_states() {
    let with = |fake| app(fake, Access::default());
    let unavailable = |body: &str| body.starts_with("503\n");
    let timed_out = || Fake { read_error: Some("etcdserver: request timed out"), ..Fake::default() };

    let text = ask(with(Fake { leaderless: true, ..Fake::default() }), "GET", "/health", &[]).await;
    assert!(unavailable(&text) && text.contains(r#"\"reason\":\"RAFT NO LEADER\""#), "{text}");
    let text = ask(with(Fake { leaderless: true, ..Fake::default() }), "GET", "/health?serializable=true", &[]).await;
    assert!(text.starts_with("200\n"), "{text}");
    let text = ask(with(timed_out()), "GET", "/health", &[]).await;
    assert!(text.contains("RANGE ERROR:etcdserver: request timed out"), "{text}");
    let text = ask(with(timed_out()), "GET", "/readyz", &[]).await;
    assert!(
        unavailable(&text) && text.contains("[-]linearizable_read failed: etcdserver: request timed out"),
        "{text}"
    );
    let text = ask(with(timed_out()), "GET", "/livez", &[]).await;
    assert!(text.starts_with("200\n"), "{text}");
    let text = ask(with(Fake { learner: true, ..Fake::default() }), "GET", "/readyz/non_learner", &[]).await;
    assert!(unavailable(&text) && text.contains("[-]non_learner failed: not supported for learner"), "{text}");
    let text = ask(with(Fake { alarms: vec![(1, Alarm::Other(9))], ..Fake::default() }), "GET", "/health", &[]).await;
    assert!(unavailable(&text) && text.contains("ALARM UNKNOWN"), "{text}");
    let text = ask(with(Fake { undecided: true, ..Fake::default() }), "GET", "/version", &[]).await;
    assert!(text.contains(r#"\"etcdcluster\":\"not_decided\",\"storage\":\"unknown\""#), "{text}");
}

#[tokio::test]
async fn origins_and_hosts() {
    let access = Access { origins: Some(vec!["http://a:1".into()]), hosts: Some(vec!["127.0.0.1".into()]) };
    let router = app(Fake::default(), access);
    let text = ask(router.clone(), "GET", "/health", &[("origin", "http://a:1")]).await;
    assert!(text.contains("access-control-allow-origin: http://a:1"), "{text}");
    let text = ask(router.clone(), "GET", "/health", &[("origin", "http://b:1")]).await;
    assert!(text.starts_with("200\n") && !text.contains("access-control"), "{text}");
    let text = ask(router, "GET", "http://evil.example/health", &[]).await;
    assert!(text.starts_with("421\n") && text.contains("evil.example"), "{text}");
}

#[tokio::test]
async fn checks_are_counted() {
    let metrics = Arc::new(Metrics::new(false));
    let fake = Fake { alarms: vec![(1, Alarm::Corrupt)], ..Fake::default() };
    let router = metrics_only(Arc::new(fake), metrics.clone());
    for target in ["/health", "/readyz", "/livez", "/metrics"] {
        ask(router.clone(), "GET", target, &[]).await;
    }
    let scrape = ask(router.clone(), "HEAD", "/metrics", &[]).await;
    let kind = "content-type: text/plain; version=0.0.4; charset=utf-8; escaping=underscores\n";
    assert_eq!(scrape, format!("200\n{kind}"));
    let text = metrics.render();
    for line in [
        "etcd_server_health_failures 1",
        "etcd_server_health_success 0",
        r#"etcd_server_healthcheck{name="data_corruption",type="readyz"} 0"#,
        r#"etcd_server_healthchecks_total{name="serializable_read",status="success",type="livez"} 1"#,
        r#"promhttp_metric_handler_requests_total{code="200"} 2"#,
    ] {
        assert!(text.lines().any(|l| l == line), "no line {line:?}");
    }
    assert!(ask(router, "GET", "/version", &[]).await.starts_with("404\n"));
}

#[tokio::test]
async fn variables() {
    let text = ask(app(Fake::default(), Access::default()), "GET", "/debug/vars", &[]).await;
    assert!(text.contains("content-type: application/json; charset=utf-8"), "{text}");
    assert!(text.contains("file_descriptor_limit"), "{text}");
}
