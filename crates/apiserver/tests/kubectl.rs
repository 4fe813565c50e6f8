//! The real kubectl on custom resources and built-in kinds.

use crate::common;

use common::{World, data, has_kubectl};

fn world_with_crontabs() -> World {
    let world = World::start();
    world.kubectl(&["apply", "-f", &data("crontabs.yaml")]).good();
    world.kubectl(&["wait", "--for=condition=Established", "crd/crontabs.stable.example.com", "--timeout=60s"]).good();
    world
}

#[test]
fn custom_resources_from_apply_to_delete() {
    if !has_kubectl() {
        return;
    }
    let world = world_with_crontabs();
    let said = world.kubectl(&["apply", "-f", &data("my-cron.yaml")]).good();
    assert_eq!(said, "crontab.stable.example.com/my-cron created\n");
    let said = world.kubectl(&["apply", "-f", &data("my-cron.yaml")]).good();
    assert_eq!(said, "crontab.stable.example.com/my-cron unchanged\n");

    let table = world.kubectl(&["get", "ct"]).good();
    assert!(table.starts_with("NAME      SPEC          AGE\nmy-cron   * * * * */5 "), "{table}");
    let table = world.kubectl(&["get", "ct", "-o", "wide"]).good();
    assert!(table.starts_with("NAME      SPEC          REPLICAS   AGE\nmy-cron   * * * * */5   2 "), "{table}");
    assert_eq!(
        world.kubectl(&["get", "ct", "my-cron", "-o", "jsonpath={.spec.image} {.metadata.generation}"]).good(),
        "busybox 1"
    );
    assert!(world.kubectl(&["describe", "ct", "my-cron"]).good().contains("Cron Spec:  * * * * */5"));
    assert!(world.kubectl(&["get", "all"]).good().contains("my-cron"));
    assert_eq!(
        world.kubectl(&["get", "ct", "-l", "tier=test", "-o", "name"]).good(),
        "crontab.stable.example.com/my-cron\n"
    );
    assert_eq!(world.kubectl(&["get", "ct", "-l", "tier!=test", "-o", "name"]).good(), "");

    world.kubectl(&["patch", "ct", "my-cron", "--type=merge", "-p", r#"{"spec":{"replicas":3}}"#]).good();
    world
        .kubectl(&[
            "patch",
            "ct",
            "my-cron",
            "--type=json",
            "-p",
            r#"[{"op":"replace","path":"/spec/image","value":"alpine"}]"#,
        ])
        .good();
    let said = world
        .kubectl(&["get", "ct", "my-cron", "-o", "jsonpath={.spec.replicas} {.spec.image} {.metadata.generation}"])
        .good();
    assert_eq!(said, "3 alpine 3");
    let refused = world.kubectl(&["patch", "ct", "my-cron", "-p", "{}"]).bad();
    assert!(refused.contains("application/merge-patch+json"), "{refused}");

    let edited = world.kubectl(&["get", "ct", "my-cron", "-o", "json"]).good().replace("alpine", "debian");
    world.kubectl_with(&["replace", "-f", "-"], &edited).good();
    let refused = world.kubectl_with(&["replace", "-f", "-"], &edited).bad();
    assert!(refused.contains("the object has been modified"), "{refused}");
    let unseen = r#"{"metadata":{"resourceVersion":null}}"#;
    assert_eq!(
        world.kubectl(&["patch", "ct", "my-cron", "--type=merge", "-p", unseen]).bad(),
        "The crontabs \"my-cron\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update\n"
    );
    world.kubectl(&["label", "ct", "my-cron", "color=red"]).good();
    world.kubectl(&["annotate", "ct", "my-cron", "note=x"]).good();

    world
        .kubectl(&[
            "patch",
            "ct",
            "my-cron",
            "--subresource=status",
            "--type=merge",
            "-p",
            r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#,
        ])
        .good();
    world.kubectl(&["wait", "--for=condition=Ready", "ct/my-cron", "--timeout=60s"]).good();
    assert_eq!(
        world.kubectl(&["get", "ct", "my-cron", "-o", "jsonpath={.metadata.generation}"]).good(),
        "4",
        "a status is no wish"
    );

    assert_eq!(world.kubectl(&["diff", "-f", &data("my-cron.yaml")]).good_or_diff(), 1);
    let said = world.kubectl(&["delete", "ct", "my-cron", "--timeout=60s"]).good();
    assert!(said.contains("deleted"), "{said}");
    assert_eq!(
        world.kubectl(&["get", "ct", "my-cron"]).bad(),
        "Error from server (NotFound): crontabs.stable.example.com \"my-cron\" not found\n"
    );
}

impl common::Said {
    /// diff ends with 1 if there is a difference.
    fn good_or_diff(self) -> i32 {
        match (self.ok, self.err.is_empty() || self.err.contains("exit status 1")) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => panic!("{}", self.err),
        }
    }
}

#[test]
fn explain_shows_the_schema() {
    if !has_kubectl() {
        return;
    }
    let world = world_with_crontabs();
    let text = world.kubectl(&["explain", "crontab.spec"]).good();
    for part in
        ["GROUP:      stable.example.com", "cronSpec\t<string> -required-", "When it runs.", "replicas\t<integer>"]
    {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(world.kubectl(&["explain", "crd.spec.names"]).good().contains("plural\t<string> -required-"));
    assert!(world.kubectl(&["explain", "configmap"]).good().contains("Entries as text."));
    assert!(world.kubectl(&["api-resources"]).good().contains("crontabs"));
}

#[test]
fn bad_objects_are_refused_in_the_words_of_kubernetes() {
    if !has_kubectl() {
        return;
    }
    let world = world_with_crontabs();
    let object = |spec: &str| {
        format!(r#"{{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{{"name":"a"}},"spec":{spec}}}"#)
    };
    let create = |spec: &str| world.kubectl_with(&["create", "-f", "-"], &object(spec)).bad();
    let said = create(r#"{"replicas": 11, "cronSpec": "x"}"#);
    assert!(said.contains("The CronTab \"a\" is invalid"), "{said}");
    assert!(
        said.contains("* spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10"),
        "{said}"
    );
    assert!(
        said.contains(r#"* spec.cronSpec: Invalid value: "x": spec.cronSpec in body should match '^(\S+ ){4}\S+$'"#),
        "{said}"
    );
    assert!(create("{}").contains("spec.cronSpec: Required value"));
    let said = create(r#"{"cronSpec": "* * * * *", "colour": "red"}"#);
    assert!(said.contains(r#"strict decoding error: unknown field "spec.colour""#), "{said}");
    let said = create(r#"{"cronSpec": "* * * * *", "steps": [{"name": "a"}, {"name": "a"}]}"#);
    assert!(said.contains(r#"spec.steps[1]: Duplicate value: {"name":"a"}"#), "{said}");
    let lenient = world.kubectl_with(
        &["create", "--validate=warn", "-f", "-"],
        &object(r#"{"cronSpec": "* * * * *", "colour": "red", "port": "http"}"#),
    );
    assert!(lenient.ok && lenient.err.contains(r#"Warning: unknown field "spec.colour""#), "{}", lenient.err);
    let said = world.kubectl(&["create", "configmap", "x", "-n", "nowhere"]).bad();
    assert!(said.contains("namespaces \"nowhere\" not found"), "{said}");
    let said = world.kubectl(&["get", "nothings"]).bad();
    assert!(said.contains("the server doesn't have a resource type \"nothings\""), "{said}");
}

#[test]
fn config_maps_secrets_and_namespaces() {
    if !has_kubectl() {
        return;
    }
    let world = World::start();
    world.kubectl(&["create", "namespace", "shop"]).good();
    assert!(world.kubectl(&["get", "ns"]).good().contains("shop              Active"));
    world.kubectl(&["create", "configmap", "greeting", "-n", "shop", "--from-literal=text=hello"]).good();
    let manifest =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied, namespace: shop}\ndata: {a: '1', b: '2'}\n";
    world.kubectl_with(&["apply", "-f", "-"], manifest).good();
    let said = world.kubectl_with(&["apply", "-f", "-"], &manifest.replace(", b: '2'", ", c: '3'")).good();
    assert_eq!(said, "configmap/applied configured\n");
    assert_eq!(
        world.kubectl(&["get", "cm", "applied", "-n", "shop", "-o", "jsonpath={.data}"]).good(),
        r#"{"a":"1","c":"3"}"#
    );
    world.kubectl(&["label", "cm", "applied", "-n", "shop", "x=y"]).good();
    world.kubectl(&["create", "secret", "generic", "s", "-n", "shop", "--from-literal=password=p"]).good();
    assert!(world.kubectl(&["get", "secrets", "-n", "shop"]).good().contains("Opaque   1"));
    world.kubectl(&["delete", "namespace", "shop", "--timeout=60s"]).good();
    assert!(
        world.kubectl(&["get", "cm", "-A", "-o", "name"]).good().is_empty(),
        "a namespace takes its content with it"
    );
    let said = world.kubectl(&["delete", "namespace", "default"]).bad();
    assert!(said.contains("this namespace may not be deleted"), "{said}");
}

#[test]
fn finalizers_hold_objects_and_definitions_take_theirs_along() {
    if !has_kubectl() {
        return;
    }
    let world = world_with_crontabs();
    world.kubectl(&["apply", "-f", &data("my-cron.yaml")]).good();
    world
        .kubectl(&[
            "patch",
            "ct",
            "my-cron",
            "--type=merge",
            "-p",
            r#"{"metadata":{"finalizers":["example.com/hold"]}}"#,
        ])
        .good();
    world.kubectl(&["delete", "ct", "my-cron", "--wait=false"]).good();
    assert!(
        !world.kubectl(&["get", "ct", "my-cron", "-o", "jsonpath={.metadata.deletionTimestamp}"]).good().is_empty()
    );
    world.kubectl(&["patch", "ct", "my-cron", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]).good();
    world.kubectl(&["get", "ct", "my-cron"]).bad();
    world.kubectl(&["apply", "-f", &data("my-cron.yaml")]).good();
    world.kubectl(&["delete", "crd", "crontabs.stable.example.com", "--timeout=60s"]).good();
    world.kubectl(&["apply", "-f", &data("crontabs.yaml")]).good();
    assert_eq!(world.kubectl(&["get", "ct", "-o", "name"]).good(), "", "objects went with their definition");
}

#[test]
fn lists_in_pages_and_watches() {
    if !has_kubectl() {
        return;
    }
    let world = World::start();
    for i in 0..7 {
        world.kubectl(&["create", "configmap", &format!("c{i}")]).good();
    }
    let raw = |path: &str| world.kubectl(&["get", "--raw", path]);
    let page: serde_json::Value =
        serde_json::from_str(&raw("/api/v1/namespaces/default/configmaps?limit=3").good()).unwrap();
    assert_eq!(
        (page["items"].as_array().unwrap().len(), page["metadata"]["remainingItemCount"].as_i64()),
        (3, Some(4))
    );
    world.kubectl(&["create", "configmap", "later"]).good();
    let next = page["metadata"]["continue"].as_str().unwrap();
    let rest: serde_json::Value =
        serde_json::from_str(&raw(&format!("/api/v1/namespaces/default/configmaps?limit=10&continue={next}")).good())
            .unwrap();
    let names: Vec<&str> =
        rest["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["c3", "c4", "c5", "c6"], "as of the first page");
    assert_eq!(rest["metadata"]["resourceVersion"], page["metadata"]["resourceVersion"]);
    assert_eq!(world.kubectl(&["get", "cm", "--chunk-size=2", "-o", "name"]).good().lines().count(), 8);

    let version = rest["metadata"]["resourceVersion"].as_str().unwrap();
    let events = raw(&format!("/api/v1/configmaps?watch=true&timeoutSeconds=1&resourceVersion={version}")).good();
    let events: Vec<serde_json::Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (events[0]["type"].as_str(), events[0]["object"]["metadata"]["name"].as_str()),
        (Some("ADDED"), Some("later"))
    );
    let initial = raw("/api/v1/configmaps?watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true").good();
    let last: serde_json::Value = serde_json::from_str(initial.lines().last().unwrap()).unwrap();
    assert_eq!((initial.lines().count(), last["type"].as_str()), (9, Some("BOOKMARK")));
    assert_eq!(last["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");

    // A revision that the store no longer has ends a watch with 410 and a page with a token to go on.
    world.run(async {
        let client = client::Client::connect([world.endpoint.clone()], client::ConnectOptions::new()).await.unwrap();
        let now = client.get("x").await.unwrap().header.unwrap().revision;
        client.compact(now, true).await.unwrap();
    });
    let old = raw(&format!("/api/v1/configmaps?watch=true&timeoutSeconds=2&resourceVersion={}", 2)).good();
    let event: serde_json::Value = serde_json::from_str(old.lines().next().unwrap()).unwrap();
    assert_eq!(
        (event["type"].as_str(), event["object"]["code"].as_i64(), event["object"]["reason"].as_str()),
        (Some("ERROR"), Some(410), Some("Expired"))
    );
    let refused = raw(&format!("/api/v1/namespaces/default/configmaps?limit=10&continue={next}")).bad();
    assert!(refused.contains("The provided continue parameter is too old"), "{refused}");
}

#[test]
fn who_may_do_what() {
    if !has_kubectl() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens.csv");
    std::fs::write(&tokens, "boss-token,boss,1,\"system:masters\"\nguest-token,guest,2,\n").unwrap();
    let world = World::start_with(|options| options.token_file = Some(tokens.clone()));
    let server = world.api().url();
    let anyone = dir.path().join("empty");
    std::fs::write(&anyone, "").unwrap();
    let with = |token: &str| {
        let anyone = anyone.display().to_string();
        world.kubectl(&[
            "--kubeconfig",
            &anyone,
            "-s",
            &server,
            "--insecure-skip-tls-verify",
            "--token",
            token,
            "get",
            "ns",
        ])
    };
    assert!(with("boss-token").good().contains("default"));
    assert!(with("guest-token").bad().contains("namespaces is forbidden: User \"guest\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope"));
    let said = with("wrong-token").bad();
    assert!(said.contains("Unauthorized") || said.contains("You must be logged in"), "{said}");
    assert_eq!(world.kubectl(&["get", "--raw", "/readyz"]).good(), "ok");
    assert!(world.kubectl(&["get", "--raw", "/metrics"]).good().contains("apiserver_request_total"));
    assert!(world.kubectl(&["version"]).good().contains("Server Version: v1.36.3+lockgate-"));
}
