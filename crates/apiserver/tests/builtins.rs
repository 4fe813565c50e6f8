//! Built-in kinds have the content and the field selectors of Kubernetes. Texts are those of kube-apiserver 1.36.3.

use crate::common;

use common::{World, http::Http};
use serde_json::{Value, json};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

async fn message(http: &mut Http, method: &str, path: &str, body: Value) -> (u16, String) {
    let answer = http.json(method, path, body).await;
    (answer.code, answer.body["message"].as_str().unwrap_or_default().to_owned())
}

fn secret(name: &str, fields: Value) -> Value {
    let mut secret = json!({"metadata": {"name": name}});
    secret.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
    secret
}

#[test]
fn rejects_invalid_secrets() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let cases = [
            (
                json!({"stringData": {"a": 1}}),
                400,
                "json: cannot unmarshal number into Go struct field Secret.stringData of type string",
            ),
            (json!({"data": {"a": "!!"}}), 400, "illegal base64 data at input byte 0"),
            (
                json!({"type": "kubernetes.io/tls"}),
                422,
                "[data[tls.crt]: Required value, data[tls.key]: Required value]",
            ),
        ];
        for (fields, code, end) in cases {
            let (found, text) = message(&mut http, "POST", SECRETS, secret("a", fields)).await;
            assert!((found, text.ends_with(end)) == (code, true), "{found} {text}");
        }
        let kept =
            http.json("POST", SECRETS, secret("a", json!({"type": "", "data": {"a": "YWI=\n", "b": null}}))).await.body;
        assert_eq!((&kept["type"], &kept["data"]), (&json!("Opaque"), &json!({"a": "YWI=", "b": ""})));
        let path = format!("{SECRETS}/a");
        let answer = http.merge(&path, json!({"type": "other"})).await;
        assert_eq!(
            answer.body["message"],
            r#"Secret "a" is invalid: type: Invalid value: "other": field is immutable"#
        );
        let answer = http.merge(&path, json!({"data": {"a": 1}})).await;
        let text = answer.body["message"].as_str().unwrap_or_default();
        assert!(text.starts_with(r#" "" is invalid: patch: Invalid value: "{"#), "{text}");
        assert!(
            text.ends_with("json: cannot unmarshal number into Go struct field Secret.data of type []uint8"),
            "{text}"
        );
    });
}

#[test]
fn selected_by_their_fields() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        for (name, kind) in [("a", "Opaque"), ("b", "ex.io/x")] {
            assert_eq!(http.json("POST", SECRETS, secret(name, json!({"type": kind}))).await.code, 201);
        }
        let listed = http.json("GET", &format!("{SECRETS}?fieldSelector=type%3Dex.io/x"), Value::Null).await.body;
        let names: Vec<_> =
            listed["items"].as_array().expect("items").iter().map(|item| &item["metadata"]["name"]).collect();
        assert_eq!(names, ["b"]);
        let active = "/api/v1/namespaces?fieldSelector=status.phase%3DActive";
        assert_eq!(http.json("GET", active, Value::Null).await.body["items"].as_array().map(Vec::len), Some(4));
        let only = r#""type" is not a known field selector: only "metadata.name", "metadata.namespace""#;
        for path in [MAPS, DEFINITIONS] {
            assert_eq!(
                message(&mut http, "GET", &format!("{path}?fieldSelector=type%3Dx"), Value::Null).await,
                (400, only.to_owned())
            );
        }
        let found =
            message(&mut http, "GET", "/api/v1/namespaces?fieldSelector=metadata.namespace%3Dx", Value::Null).await;
        assert_eq!(found, (400, "field label not supported: metadata.namespace".to_owned()));
    });
}
