//! Certificates and tokens over a real TLS connection, with the answers of Kubernetes.

use crate::common;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::{World, http::Http};
use harness::asynchronous::{until, until_some};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::Value;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MASTERS: &str = "system:masters";

/// A client certificate with its key, as PEM.
struct Identity {
    cert: String,
    key: String,
}

/// The validity of a certificate, in seconds since the Unix epoch.
type Window = std::ops::Range<i64>;

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// A window of these seconds from now on.
fn from_now(window: Window) -> Window {
    now() + window.start..now() + window.end
}

fn good() -> Window {
    from_now(-60..3600)
}

fn identity(
    issuer: &Issuer<'_, KeyPair>,
    name: Option<&str>,
    window: Window,
    usage: ExtendedKeyUsagePurpose,
) -> Identity {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, MASTERS);
    if let Some(name) = name {
        params.distinguished_name.push(DnType::CommonName, name);
    }
    let at = |seconds: i64| rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds as u64);
    (params.not_before, params.not_after) = (at(window.start), at(window.end));
    params.extended_key_usages = vec![usage];
    Identity { cert: params.signed_by(&key, issuer).unwrap().pem(), key: key.serialize_pem() }
}

fn client(issuer: &Issuer<'_, KeyPair>, window: Window) -> Identity {
    identity(issuer, Some("ann"), window, ExtendedKeyUsagePurpose::ClientAuth)
}

/// The authority of the server.
fn own(world: &World) -> Issuer<'static, KeyPair> {
    let read = |name: &str| std::fs::read_to_string(world.dir().join("api/pki").join(name)).unwrap();
    Issuer::from_ca_cert_pem(&read("ca.crt"), KeyPair::from_pem(&read("ca.key")).unwrap()).unwrap()
}

/// Another authority with the name of the server's.
fn other() -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "lockgate-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Issuer::new(params, KeyPair::generate().unwrap())
}

async fn connect(api: &apiserver::Server, identity: &Identity) -> Http {
    Http::connect_as(api, Some((identity.cert.as_bytes(), identity.key.as_bytes()))).await
}

/// The code and the Status of a request with this header.
async fn ask(http: &mut Http, path: &str, authorization: &str) -> (u16, Value) {
    let headers = [("authorization", authorization)];
    let headers = if authorization.is_empty() { &[][..] } else { &headers[..] };
    let (code, _, body) = http.get_with(path, headers).await;
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

#[track_caller]
fn unauthorized((code, status): (u16, Value), who: &str) {
    let expected = serde_json::json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "Unauthorized", "reason": "Unauthorized", "code": 401});
    assert_eq!((code, status), (401, expected), "{who}");
}

#[track_caller]
fn anonymous((code, status): (u16, Value), who: &str) {
    let why = "configmaps is forbidden: User \"system:anonymous\" cannot list resource \"configmaps\" in API group \"\" in \
               the namespace \"default\"";
    assert_eq!(
        (code, status["reason"].as_str(), status["message"].as_str()),
        (403, Some("Forbidden"), Some(why)),
        "{who}"
    );
}

fn world() -> World {
    World::start_with(|options| {
        let path = options.data_dir.with_file_name("tokens.csv");
        std::fs::write(&path, "s3cret,bob,1,\"system:masters,dev\"\n").unwrap();
        options.token_file = Some(path);
    })
}

#[test]
fn certificates() {
    let world = world();
    let (own, other, api) = (own(&world), other(), world.api());
    let server = identity(&own, Some("ann"), good(), ExtendedKeyUsagePurpose::ServerAuth);
    let bad = [
        ("expired", client(&own, from_now(-7200..-3600))),
        ("not yet valid", client(&own, from_now(3600..7200))),
        ("of another authority", client(&other, good())),
        ("for servers", server),
    ];
    world.run(async {
        let mut http = connect(api, &client(&own, good())).await;
        assert_eq!(ask(&mut http, MAPS, "").await.0, 200);
        assert_eq!(ask(&mut http, MAPS, "Bearer wrong").await.0, 200, "a good certificate is enough");
        for (who, identity) in &bad {
            // The handshake succeeds, so that the client gets an answer.
            let mut http = connect(api, identity).await;
            unauthorized(ask(&mut http, MAPS, "").await, who);
            unauthorized(ask(&mut http, "/version", "").await, who);
            unauthorized(ask(&mut http, MAPS, "Bearer wrong").await, who);
            assert_eq!(ask(&mut http, MAPS, "Bearer s3cret").await.0, 200, "{who}: a good token is enough");
        }
        let nobody = identity(&own, None, good(), ExtendedKeyUsagePurpose::ClientAuth);
        anonymous(ask(&mut connect(api, &nobody).await, MAPS, "").await, "one without a name");
    });
}

/// Connections of a certificate that is valid until a moment in the future and of one that is valid from then on, and their
/// first answers. Returns `None` if the answers came too late to be from before that moment.
async fn around(world: &World, own: &Issuer<'_, KeyPair>, moment: i64) -> Option<[(Http, (u16, Value)); 2]> {
    let mut old = connect(world.api(), &client(own, moment - 3600..moment)).await;
    let mut young = connect(world.api(), &client(own, moment..moment + 3600)).await;
    let answers = (ask(&mut old, MAPS, "").await, ask(&mut young, MAPS, "").await);
    (now() < moment).then_some([(old, answers.0), (young, answers.1)])
}

/// Found in review: certificates were validated when a connection was made, and accepted for as long as it was open.
#[test]
fn a_certificate_that_expires_while_its_connection_is_open_is_refused_from_then_on() {
    let world = world();
    let own = own(&world);
    world.run(async {
        let mut ahead = 1;
        let [(mut old, before), (mut young, too_early)] = until_some("a machine is fast enough", async || {
            // Twice as long each time, for slow machines.
            ahead *= 2;
            around(&world, &own, now() + ahead).await
        })
        .await;
        assert_eq!(before.0, 200);
        unauthorized(too_early, "not yet");
        until("a certificate has expired", async || ask(&mut old, MAPS, "").await.0 != 200).await;
        unauthorized(ask(&mut old, MAPS, "").await, "expired");
        until("a certificate is valid", async || ask(&mut young, MAPS, "").await.0 != 401).await;
        assert_eq!(ask(&mut young, MAPS, "").await.0, 200);
        let write = serde_json::json!({"metadata": {"name": "late"}});
        assert_eq!(old.json("POST", MAPS, write).await.code, 401);
        assert_eq!(ask(&mut young, &format!("{MAPS}/late"), "").await.0, 404, "nothing was written");
    });
}

#[test]
fn tokens_and_anonymous_requests() {
    let world = world();
    world.run(async {
        let mut http = Http::connect_as(world.api(), None).await;
        for good in ["Bearer s3cret", "bearer s3cret", "BEARER s3cret"] {
            assert_eq!(ask(&mut http, MAPS, good).await.0, 200, "{good}");
        }
        for bad in ["Bearer wrong", "Bearer s3cre", "Bearer S3CRET", "bearer s3cret2"] {
            unauthorized(ask(&mut http, MAPS, bad).await, bad);
            unauthorized(ask(&mut http, "/healthz", bad).await, bad);
        }
        // Headers that no authenticator reads count as none.
        for none in ["", "Bearer", "Bearer ", "Basic Zm9vOmJhcg==", "s3cret"] {
            anonymous(ask(&mut http, MAPS, none).await, none);
            assert_eq!(ask(&mut http, "/version", none).await.0, 200, "{none}");
        }
        let (code, _, body) = http.get_with("/healthz", &[]).await;
        assert_eq!((code, &body[..]), (200, &b"ok"[..]));
    });
}

/// As in Kubernetes, a change of the file takes effect at the next start.
#[test]
fn a_token_file_is_read_at_the_start() {
    let world = world();
    let file = world.dir().join("tokens.csv");
    std::fs::write(&file, "n3w,bob,1,system:masters\n").unwrap();
    world.run(async {
        let mut http = Http::connect_as(world.api(), None).await;
        assert_eq!(ask(&mut http, MAPS, "Bearer s3cret").await.0, 200);
        unauthorized(ask(&mut http, MAPS, "Bearer n3w").await, "not yet known");
        let mut options = apiserver::Options::new(vec![world.endpoint().to_owned()], world.dir().join("next"));
        options.token_file = Some(file.clone());
        let next = apiserver::Server::start(options.clone()).await.unwrap();
        let mut http = Http::connect_as(&next, None).await;
        assert_eq!(ask(&mut http, MAPS, "Bearer n3w").await.0, 200);
        unauthorized(ask(&mut http, MAPS, "Bearer s3cret").await, "no longer known");
        std::fs::write(&file, "one,two\n").unwrap();
        let error = apiserver::Server::start(options.clone()).await.err().expect("a bad file").to_string();
        assert!(
            error.starts_with("line 1 of the token file")
                && error.ends_with("should be token,user,uid,\"group1,group2\""),
            "{error}"
        );
        std::fs::remove_file(&file).unwrap();
        let error = apiserver::Server::start(options).await.err().expect("no file").to_string();
        assert!(error.starts_with("failed to read the token file"), "{error}");
    });
}
