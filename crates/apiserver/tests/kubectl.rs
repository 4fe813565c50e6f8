//! The real kubectl on custom resources and built-in kinds.

use crate::common;

use common::{World, data, http::Events};

fn world_with_crontabs() -> World {
    let world = World::start();
    world.kubectl(&["apply", "-f", &data("crontabs.yaml")]).ok();
    world.kubectl_wait(&["--for=condition=Established", "crd/crontabs.stable.example.com"]).ok();
    world
}

#[test]
fn custom_resources_from_apply_to_delete() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world_with_crontabs();
    let said = world.kubectl(&["apply", "-f", &data("my-cron.yaml")]).ok();
    assert_eq!(said, "crontab.stable.example.com/my-cron created\n");
    let said = world.kubectl(&["apply", "-f", &data("my-cron.yaml")]).ok();
    assert_eq!(said, "crontab.stable.example.com/my-cron unchanged\n");

    let table = world.kubectl(&["get", "ct"]).ok();
    assert!(table.starts_with("NAME      SPEC          AGE\nmy-cron   * * * * */5 "), "{table}");
    let table = world.kubectl(&["get", "ct", "-o", "wide"]).ok();
    assert!(table.starts_with("NAME      SPEC          REPLICAS   AGE\nmy-cron   * * * * */5   2 "), "{table}");
    assert_eq!(
        world.kubectl(&["get", "ct", "my-cron", "-o", "jsonpath={.spec.image} {.metadata.generation}"]).ok(),
        "busybox 1"
    );
    assert!(world.kubectl(&["describe", "ct", "my-cron"]).ok().contains("Cron Spec:  * * * * */5"));
    assert!(world.kubectl(&["get", "all"]).ok().contains("my-cron"));
    assert_eq!(
        world.kubectl(&["get", "ct", "-l", "tier=test", "-o", "name"]).ok(),
        "crontab.stable.example.com/my-cron\n"
    );
    assert_eq!(world.kubectl(&["get", "ct", "-l", "tier!=test", "-o", "name"]).ok(), "");

    world.kubectl(&["patch", "ct", "my-cron", "--type=merge", "-p", r#"{"spec":{"replicas":3}}"#]).ok();
    world
        .kubectl(&[
            "patch",
            "ct",
            "my-cron",
            "--type=json",
            "-p",
            r#"[{"op":"replace","path":"/spec/image","value":"alpine"}]"#,
        ])
        .ok();
    let said = world
        .kubectl(&["get", "ct", "my-cron", "-o", "jsonpath={.spec.replicas} {.spec.image} {.metadata.generation}"])
        .ok();
    assert_eq!(said, "3 alpine 3");
    let refused = world.kubectl(&["patch", "ct", "my-cron", "-p", "{}"]).error();
    assert!(refused.contains("application/merge-patch+json"), "{refused}");

    let edited = world.kubectl(&["get", "ct", "my-cron", "-o", "json"]).ok().replace("alpine", "debian");
    world.kubectl_with(&["replace", "-f", "-"], &edited).ok();
    let refused = world.kubectl_with(&["replace", "-f", "-"], &edited).error();
    assert!(refused.contains("the object has been modified"), "{refused}");
    let unseen = r#"{"metadata":{"resourceVersion":null}}"#;
    assert_eq!(
        world.kubectl(&["patch", "ct", "my-cron", "--type=merge", "-p", unseen]).error(),
        "The crontabs \"my-cron\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
    world.kubectl(&["label", "ct", "my-cron", "color=red"]).ok();
    world.kubectl(&["annotate", "ct", "my-cron", "note=x"]).ok();

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
        .ok();
    world.kubectl_wait(&["--for=condition=Ready", "ct/my-cron"]).ok();
    assert_eq!(
        world.kubectl(&["get", "ct", "my-cron", "-o", "jsonpath={.metadata.generation}"]).ok(),
        "4",
        "a change of the status does not change the generation"
    );

    let diff = world.kubectl(&["diff", "-f", &data("my-cron.yaml")]);
    assert_eq!(diff.code, Some(1), "1 means a difference: {}", diff.stderr);
    assert!(diff.stderr.is_empty() || diff.stderr.contains("exit status 1"), "{}", diff.stderr);
    let said = world.kubectl_delete(&["ct", "my-cron"]).ok();
    assert!(said.contains("deleted"), "{said}");
    assert_eq!(
        world.kubectl(&["get", "ct", "my-cron"]).error(),
        "Error from server (NotFound): crontabs.stable.example.com \"my-cron\" not found"
    );
}

#[test]
fn explain_shows_the_schema() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world_with_crontabs();
    let text = world.kubectl(&["explain", "crontab.spec"]).ok();
    for part in
        ["GROUP:      stable.example.com", "cronSpec\t<string> -required-", "When it runs.", "replicas\t<integer>"]
    {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(world.kubectl(&["explain", "crd.spec.names"]).ok().contains("plural\t<string> -required-"));
    assert!(world.kubectl(&["explain", "configmap"]).ok().contains("Entries as text."));
    assert!(world.kubectl(&["api-resources"]).ok().contains("crontabs"));
}

#[test]
fn rejects_invalid_objects_with_the_texts_of_kubernetes() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world_with_crontabs();
    let object = |spec: &str| {
        format!(r#"{{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{{"name":"a"}},"spec":{spec}}}"#)
    };
    let create = |spec: &str| world.kubectl_with(&["create", "-f", "-"], &object(spec)).error();
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
    assert!(
        lenient.code == Some(0) && lenient.stderr.contains(r#"Warning: unknown field "spec.colour""#),
        "{}",
        lenient.stderr
    );
    let said = world.kubectl(&["create", "configmap", "x", "-n", "nowhere"]).error();
    assert!(said.contains("namespaces \"nowhere\" not found"), "{said}");
    let said = world.kubectl(&["get", "nothings"]).error();
    assert!(said.contains("the server doesn't have a resource type \"nothings\""), "{said}");
}

#[test]
fn config_maps_secrets_and_namespaces() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = World::start();
    world.kubectl(&["create", "namespace", "shop"]).ok();
    assert!(world.kubectl(&["get", "ns"]).ok().contains("shop              Active"));
    world.kubectl(&["create", "configmap", "greeting", "-n", "shop", "--from-literal=text=hello"]).ok();
    let manifest =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied, namespace: shop}\ndata: {a: '1', b: '2'}\n";
    world.kubectl_with(&["apply", "-f", "-"], manifest).ok();
    let said = world.kubectl_with(&["apply", "-f", "-"], &manifest.replace(", b: '2'", ", c: '3'")).ok();
    assert_eq!(said, "configmap/applied configured\n");
    assert_eq!(
        world.kubectl(&["get", "cm", "applied", "-n", "shop", "-o", "jsonpath={.data}"]).ok(),
        r#"{"a":"1","c":"3"}"#
    );
    world.kubectl(&["label", "cm", "applied", "-n", "shop", "x=y"]).ok();
    world.kubectl(&["create", "secret", "generic", "s", "-n", "shop", "--from-literal=password=p"]).ok();
    assert!(world.kubectl(&["get", "secrets", "-n", "shop"]).ok().contains("Opaque   1"));
    world.kubectl_delete(&["namespace", "shop"]).ok();
    assert!(world.kubectl(&["get", "cm", "-A", "-o", "name"]).ok().is_empty(), "a namespace takes its content with it");
    let said = world.kubectl(&["delete", "namespace", "default"]).error();
    assert!(said.contains("this namespace may not be deleted"), "{said}");
}

#[test]
fn finalizers_keep_objects_and_definitions_delete_theirs() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world_with_crontabs();
    world.kubectl(&["apply", "-f", &data("my-cron.yaml")]).ok();
    world
        .kubectl(&[
            "patch",
            "ct",
            "my-cron",
            "--type=merge",
            "-p",
            r#"{"metadata":{"finalizers":["example.com/hold"]}}"#,
        ])
        .ok();
    world.kubectl(&["delete", "ct", "my-cron", "--wait=false"]).ok();
    assert!(!world.kubectl(&["get", "ct", "my-cron", "-o", "jsonpath={.metadata.deletionTimestamp}"]).ok().is_empty());
    world.kubectl(&["patch", "ct", "my-cron", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]).ok();
    world.kubectl(&["get", "ct", "my-cron"]).error();
    world.kubectl(&["apply", "-f", &data("my-cron.yaml")]).ok();
    world.kubectl_delete(&["crd", "crontabs.stable.example.com"]).ok();
    world.kubectl(&["apply", "-f", &data("crontabs.yaml")]).ok();
    assert_eq!(world.kubectl(&["get", "ct", "-o", "name"]).ok(), "", "objects went with their definition");
}

#[test]
fn lists_in_pages_and_watches() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = World::start();
    for i in 0..7 {
        world.kubectl(&["create", "configmap", &format!("c{i}")]).ok();
    }
    let raw = |path: &str| world.kubectl(&["get", "--raw", path]);
    let page: serde_json::Value =
        serde_json::from_str(&raw("/api/v1/namespaces/default/configmaps?limit=3").ok()).unwrap();
    assert_eq!(
        (page["items"].as_array().unwrap().len(), page["metadata"]["remainingItemCount"].as_i64()),
        (3, Some(4))
    );
    world.kubectl(&["create", "configmap", "later"]).ok();
    let next = page["metadata"]["continue"].as_str().unwrap();
    let rest: serde_json::Value =
        serde_json::from_str(&raw(&format!("/api/v1/namespaces/default/configmaps?limit=10&continue={next}")).ok())
            .unwrap();
    let names: Vec<&str> =
        rest["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["c3", "c4", "c5", "c6"], "as of the first page");
    assert_eq!(rest["metadata"]["resourceVersion"], page["metadata"]["resourceVersion"]);
    assert_eq!(world.kubectl(&["get", "cm", "--chunk-size=2", "-o", "name"]).ok().lines().count(), 8);

    let version = rest["metadata"]["resourceVersion"].as_str().unwrap();
    let take = |query: &str, count: usize| {
        let path = format!("/api/v1/configmaps?watch=true&timeoutSeconds=3600&{query}");
        world.run(async { Events::open(world.api(), &path).await.take(count).await })
    };
    let event = &take(&format!("resourceVersion={version}"), 1)[0];
    assert_eq!((event["type"].as_str(), event["object"]["metadata"]["name"].as_str()), (Some("ADDED"), Some("later")));
    let initial = take("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", 9);
    let (last, objects) = initial.split_last().unwrap();
    assert!(objects.iter().all(|event| event["type"] == "ADDED"), "{objects:?}");
    assert_eq!(last["type"], "BOOKMARK");
    assert_eq!(last["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");

    // A compacted revision ends a watch with 410, and a page with a token to continue.
    world.run(async {
        let client =
            client::Client::connect([world.endpoint().to_owned()], client::ConnectOptions::new()).await.unwrap();
        let now = client.get("x").await.unwrap().header.unwrap().revision;
        client.compact(now, true).await.unwrap();
    });
    let old = raw(&format!("/api/v1/configmaps?watch=true&timeoutSeconds=3600&resourceVersion={}", 2)).ok();
    let event: serde_json::Value = serde_json::from_str(old.lines().next().unwrap()).unwrap();
    assert_eq!(
        (event["type"].as_str(), event["object"]["code"].as_i64(), event["object"]["reason"].as_str()),
        (Some("ERROR"), Some(410), Some("Expired"))
    );
    let refused = raw(&format!("/api/v1/namespaces/default/configmaps?limit=10&continue={next}")).error();
    assert!(refused.contains("The provided continue parameter is too old"), "{refused}");
}

#[test]
fn tokens_and_permissions() {
    if harness::kubectl().is_none() {
        return;
    }
    let dir = harness::tempdir();
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
    assert!(with("boss-token").ok().contains("default"));
    assert!(with("guest-token").error().contains("namespaces is forbidden: User \"guest\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope"));
    let said = with("wrong-token").error();
    assert!(said.contains("Unauthorized") || said.contains("You must be logged in"), "{said}");
    assert_eq!(world.kubectl(&["get", "--raw", "/readyz"]).ok(), "ok");
    assert!(world.kubectl(&["get", "--raw", "/metrics"]).ok().contains("apiserver_request_total"));
    assert!(world.kubectl(&["version"]).ok().contains("Server Version: v1.36.3+lockgate-"));
}
