//! Unknown and duplicate fields, in all kinds of writes and modes of `fieldValidation`. The texts are those of Kubernetes 1.36 for
//! custom resources.

use crate::common;

use common::{
    World,
    http::{Answer, Http},
};
use serde_json::json;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ALL: &str = "/apis/example.com/v1/namespaces/default/forms";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const MERGE: &str = "application/merge-patch+json";
const PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn world() -> World {
    let world = World::start();
    world.run(async {
        let spec = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
        let subresources =
            json!({"status": {}, "scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "forms.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "forms", "kind": "Form"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "subresources": subresources,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": spec}}}}]}});
        assert_eq!(Http::connect(world.api()).await.json("POST", CRDS, definition).await.code, 201);
    });
    world
}

fn json_form(name: &str) -> String {
    format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Form","metadata":{{"name":"{name}"}},"spec":{{"a":1,"a":2,"x":3}}}}"#
    )
}

fn yaml_form(name: &str) -> String {
    format!("apiVersion: example.com/v1\nkind: Form\nmetadata:\n  name: {name}\nspec:\n  a: 1\n  a: 2\n  x: 3\n")
}

fn message(answer: &Answer) -> &str {
    answer.body["message"].as_str().unwrap_or_default()
}

/// The texts of warnings, without the frame of the header.
fn warned(answer: &Answer) -> Vec<String> {
    let text = |text: &String| {
        let inner = text.strip_prefix("299 - \"").and_then(|text| text.strip_suffix('"')).expect("a warning");
        inner.replace("\\\"", "\"")
    };
    answer.warnings.iter().map(text).collect()
}

#[test]
fn whole_objects() {
    let world = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let refused = http.send("POST", &format!("{ALL}?fieldValidation=Strict"), JSON, json_form("j")).await;
        let frame = "Form in version \"v1\" cannot be handled as a Form: strict decoding error: ";
        assert_eq!(refused.code, 400);
        assert_eq!(message(&refused), format!("{frame}duplicate field \"spec.a\", unknown field \"spec.x\""));
        let refused = http.send("POST", &format!("{ALL}?fieldValidation=Strict"), YAML, yaml_form("yam")).await;
        let lines = "yaml: unmarshal errors:\n  line 7: key \"a\" already set in map, unknown field \"spec.x\"";
        assert_eq!((refused.code, message(&refused)), (400, &*format!("{frame}{lines}")));

        let made = http.send("POST", &format!("{ALL}?fieldValidation=Warn"), JSON, json_form("j")).await;
        assert_eq!((made.code, &made.body["spec"]), (201, &json!({"a": 2})));
        assert_eq!(warned(&made), ["duplicate field \"spec.a\"", "unknown field \"spec.x\""]);
        let made = http.send("POST", ALL, YAML, yaml_form("yam")).await;
        assert_eq!((made.code, &made.body["spec"]), (201, &json!({"a": 2})));
        assert_eq!(warned(&made), ["line 7: key \"a\" already set in map", "unknown field \"spec.x\""]);
        for (media, body) in [(JSON, json_form("ij")), (YAML, yaml_form("iy"))] {
            let made = http.send("POST", &format!("{ALL}?fieldValidation=Ignore"), media, body).await;
            assert_eq!((made.code, &made.body["spec"], warned(&made).len()), (201, &json!({"a": 2}), 0));
        }
        let version = made.body["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let body = yaml_form("yam").replace("  name: yam", &format!("  name: yam\n  resourceVersion: \"{version}\""));
        let put = http.send("PUT", &format!("{ALL}/yam?fieldValidation=Strict"), YAML, body).await;
        assert!(put.code == 400 && message(&put).contains("line 8: key \"a\" already set in map"), "{}", put.body);
    });
}

#[test]
fn patches() {
    let world = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let form = json!({"apiVersion": "example.com/v1", "kind": "Form", "metadata": {"name": "p"}, "spec": {"a": 1}});
        let first = http.json("POST", ALL, form).await;
        let patches = [
            (MERGE, r#"{"spec":{"a":2,"a":3,"x":1}}"#, "duplicate field \"spec.a\""),
            (
                PATCH,
                r#"[{"op":"add","path":"/spec/b","path":"/spec/x","value":1}]"#,
                "json patch duplicate field \"[0].path\"",
            ),
            (PATCH, r#"[{"op":"add","path":"/spec/x","value":1,"why":1}]"#, "json patch unknown field \"[0].why\""),
        ];
        for (media, body, fault) in patches {
            let refused = http.send("PATCH", &format!("{ALL}/p?fieldValidation=Strict"), media, body).await;
            assert_eq!((refused.code, refused.body["reason"].as_str()), (422, Some("Invalid")), "{}", refused.body);
            let text = message(&refused);
            assert!(text.starts_with(" \"\" is invalid: patch: Invalid value: \"{\\\"apiVersion\\\""), "{text}");
            assert!(text.ends_with(&format!("strict decoding error: {fault}, unknown field \"spec.x\"")), "{text}");
            let warm = http.send("PATCH", &format!("{ALL}/p?dryRun=All"), media, body).await;
            assert_eq!(warned(&warm), [fault, "unknown field \"spec.x\""], "{}", warm.body);
            let quiet = http.send("PATCH", &format!("{ALL}/p?dryRun=All&fieldValidation=Ignore"), media, body).await;
            assert_eq!((quiet.code, warned(&quiet).len()), (200, 0));
        }
        let now = http.json("GET", &format!("{ALL}/p"), serde_json::Value::Null).await;
        assert_eq!(now.body, first.body, "nothing was written");
    });
}

#[test]
fn configurations_to_apply() {
    let world = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let yaml = yaml_form("a").replace("  x: 3\n", "");
        let text = json_form("a").replace(",\"x\":3", "");
        let frame = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  ";
        // JSON is parsed as YAML of one line.
        for (body, line) in [(&yaml, 7), (&text, 1)] {
            let key = format!("line {line}: key \"a\" already set in map");
            let path = format!("{ALL}/a?fieldManager=m");
            let refused = http.send("PATCH", &format!("{path}&fieldValidation=Strict"), APPLY, body.clone()).await;
            assert_eq!((refused.code, message(&refused)), (400, &*format!("{frame}{key}")));
            let applied = http.send("PATCH", &path, APPLY, body.clone()).await;
            assert_eq!((warned(&applied), &applied.body["spec"]), (vec![key], &json!({"a": 2})));
            let quiet = http.send("PATCH", &format!("{path}&fieldValidation=Ignore"), APPLY, body.clone()).await;
            assert_eq!((quiet.code, warned(&quiet).len()), (200, 0));
        }
    });
}

/// A request for a part of an object, with the answer of Kubernetes in each mode.
struct Asked {
    part: &'static str,
    method: &'static str,
    media: &'static str,
    body: String,
    warned: Vec<&'static str>,
    /// The end of the refusal.
    strict: &'static str,
    code: u16,
}

fn parts() -> Vec<Asked> {
    let head = |kind: &str| format!(r#"{{"apiVersion":"{kind}","metadata":{{"name":"p","zzz":1}},"#);
    let scale = head(r#"autoscaling/v1","kind":"Scale"#);
    let whole = head(r#"example.com/v1","kind":"Form"#).replace("\"zzz\":1", "\"resourceVersion\":\"RV\"");
    let yaml =
        "apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: p}\nspec:\n  replicas: 3\n  replicas: 4\n  zz: 1\n";
    let ask = |part, method, media, body: &str, warned: &[&'static str], strict, code| Asked {
        part,
        method,
        media,
        body: body.to_owned(),
        warned: warned.to_vec(),
        strict,
        code,
    };
    vec![
        ask(
            "scale",
            "PUT",
            JSON,
            &format!(r#"{scale}"spec":{{"replicas":3,"replicas":4,"zz":1}},"yy":2}}"#),
            &[
                "duplicate field \"spec.replicas\"",
                "unknown field \"metadata.zzz\"",
                "unknown field \"spec.zz\"",
                "unknown field \"yy\"",
            ],
            "Scale in version \"v1\" cannot be handled as a Scale: strict decoding error: duplicate field \"spec.replicas\", unknown field \"metadata.zzz\", unknown field \"spec.zz\", unknown field \"yy\"",
            400,
        ),
        ask(
            "scale",
            "PUT",
            YAML,
            yaml,
            &["line 6: key \"replicas\" already set in map", "unknown field \"spec.zz\""],
            "strict decoding error: yaml: unmarshal errors:\n  line 6: key \"replicas\" already set in map, unknown field \"spec.zz\"",
            400,
        ),
        ask(
            "scale",
            "PATCH",
            MERGE,
            r#"{"spec":{"replicas":4,"replicas":4,"zz":1}}"#,
            &["duplicate field \"spec.replicas\"", "unknown field \"spec.zz\""],
            "strict decoding error: duplicate field \"spec.replicas\", unknown field \"spec.zz\"",
            422,
        ),
        ask(
            "scale",
            "PATCH",
            PATCH,
            r#"[{"op":"add","path":"/spec/zz","value":1,"why":1},{"op":"replace","path":"/spec/replicas","value":4}]"#,
            &["json patch unknown field \"[0].why\"", "unknown field \"spec.zz\""],
            "strict decoding error: json patch unknown field \"[0].why\", unknown field \"spec.zz\"",
            422,
        ),
        ask(
            "status",
            "PUT",
            JSON,
            &format!(r#"{whole}"status":{{"a":3,"a":4,"zz":1}},"yy":2}}"#),
            &["duplicate field \"status.a\"", "unknown field \"status.zz\"", "unknown field \"yy\""],
            "Form in version \"v1\" cannot be handled as a Form: strict decoding error: duplicate field \"status.a\", unknown field \"status.zz\", unknown field \"yy\"",
            400,
        ),
        ask(
            "status",
            "PATCH",
            MERGE,
            r#"{"status":{"a":4,"a":4,"zz":1}}"#,
            &["duplicate field \"status.a\"", "unknown field \"status.zz\""],
            "strict decoding error: duplicate field \"status.a\", unknown field \"status.zz\"",
            422,
        ),
    ]
}

#[test]
fn scale_and_status() {
    let world = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let form = json!({"apiVersion": "example.com/v1", "kind": "Form", "metadata": {"name": "p"}, "spec": {"a": 1}});
        let made = http.json("POST", ALL, form).await;
        let version = made.body["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        for asked in parts() {
            let (path, body) = (format!("{ALL}/p/{}?dryRun=All", asked.part), asked.body.replace("RV", &version));
            let strict = http.send(asked.method, &format!("{path}&fieldValidation=Strict"), asked.media, body.clone()).await;
            assert!(strict.code == asked.code && message(&strict).ends_with(asked.strict), "{}", strict.body);
            let warm = http.send(asked.method, &path, asked.media, body.clone()).await;
            assert_eq!((warm.code, warned(&warm)), (200, asked.warned.iter().map(|text| (*text).to_owned()).collect()), "{}", warm.body);
            let count = match asked.part {
                "scale" => &warm.body["spec"]["replicas"],
                _ => &warm.body["status"]["a"],
            };
            assert_eq!(count, 4, "the last one counts");
            let quiet = http.send(asked.method, &format!("{path}&fieldValidation=Ignore"), asked.media, body).await;
            assert_eq!((quiet.code, warned(&quiet).len()), (200, 0));
        }
        // Apply refuses unknown fields in every mode.
        let config = "apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: p}\nspec: {replicas: 3, zz: 1}\n";
        let refused = http.send("PATCH", &format!("{ALL}/p/scale?fieldManager=m&fieldValidation=Ignore"), APPLY, config).await;
        let text = "failed to create typed patch object (default/p; autoscaling/v1, Kind=Scale): .spec.zz: field not declared in schema";
        assert_eq!((refused.code, message(&refused)), (400, text));
        let now = http.json("GET", &format!("{ALL}/p"), serde_json::Value::Null).await;
        assert_eq!(now.body, made.body, "nothing was written");
    });
}

/// Warnings about the form of a request do not depend on its outcome.
#[test]
fn a_refused_request_has_its_warnings() {
    let world = world();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let form = |spec: &str| {
            format!(r#"{{"apiVersion":"example.com/v1","kind":"Form","metadata":{{"name":"a"}},"spec":{spec}}}"#)
        };
        let refused = http.send("POST", ALL, JSON, form(r#"{"a":"text","x":1}"#)).await;
        assert_eq!((refused.code, warned(&refused)), (422, vec![r#"unknown field "spec.x""#.to_owned()]));
        assert_eq!(http.send("POST", ALL, JSON, form(r#"{"a":1}"#)).await.code, 201);
        let refused = http.send("PATCH", &format!("{ALL}/a"), MERGE, r#"{"spec":{"a":"text","x":1}}"#).await;
        assert_eq!((refused.code, warned(&refused)), (422, vec![r#"unknown field "spec.x""#.to_owned()]));
        let strict =
            http.send("POST", &format!("{ALL}?fieldValidation=Strict"), JSON, form(r#"{"a":"text","x":1}"#)).await;
        assert_eq!((strict.code, warned(&strict)), (400, Vec::<String>::new()));
    });
}
