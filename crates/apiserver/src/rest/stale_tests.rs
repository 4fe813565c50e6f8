//! A server that has not yet seen the change of a gate or a policy must not answer by its old state.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use harness::asynchronous::until;
use http::{HeaderMap, HeaderValue};
use playground::Member;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::{Api, Call, Intent, Limits};
use crate::{
    admission::{self, Policies},
    builtin,
    catalog::Catalog,
    janitor, keeper,
    patch::{MERGE, Patch},
    route::{Route, Target, parse},
    serve::{
        accept::Form,
        answer::Warnings,
        auth::User,
        metrics::Metrics,
        query::{FieldValidation, Query},
        style::Style,
    },
    store::{Change, Seen, Store, prefix},
};

const THING: &str = "/apis/g.example.com/v1/namespaces/default/things/a";

fn target(path: &str) -> Target {
    match parse(path) {
        Route::Resource(target) => target,
        other => panic!("{other:?}"),
    }
}

fn call(body: &Value) -> Call {
    let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let user = User::new("tester".to_owned(), Vec::new());
    Call {
        user,
        query: Query::default(),
        form: Form::Object,
        style: Style::Line,
        headers,
        body: Bytes::from(body.to_string()),
    }
}

fn definition(enabled: bool) -> Value {
    let gate = json!({"name": "N", "preRelease": "alpha", "enabled": enabled, "fieldPaths": [".spec.n"]});
    let schema =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
    let mut object = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.g.example.com"},
        "spec": {"group": "g.example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "customFeatureGates": {"featureGates": [gate]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    crate::crd::fill(&mut object);
    crate::crd::decide_status(&mut object, &[]);
    object
}

async fn put(store: &Store, key: String, object: &Value) {
    let revision = store.get(&key).await.unwrap().map_or(0, |entry| entry.revision);
    store.write(&Seen { key, revision }, &[], Change::Put(object.to_string().as_bytes())).await.unwrap();
}

/// A server that learns of definitions and policies only from the test.
async fn stale_server(store: &Store) -> (Api, watch::Sender<Arc<Catalog>>, watch::Sender<Arc<Policies>>) {
    let (sender, catalog) = watch::channel(Arc::new(keeper::load(store, true).await.unwrap()));
    let (teller, policies) = watch::channel(Arc::new(admission::keeper::load(store).await.unwrap()));
    let (metrics, janitor) = (Metrics::new().unwrap(), Arc::new(Notify::new()));
    (
        Api {
            printed: Arc::default(),
            store: store.clone(),
            catalog,
            policies,
            metrics,
            janitor,
            field_gates: true,
            bookmark_every: Duration::from_secs(60),
            watch_limits: Limits { bytes_max: 1 << 20, patience: Duration::from_secs(60) },
        },
        sender,
        teller,
    )
}

/// Waits until `tasks` wait for a newer value: each holds a receiver of its own then, in addition to the `idle` ones.
async fn until_waiting<T>(sender: &watch::Sender<T>, idle: usize, tasks: usize) {
    until("the writes wait for the server", async || sender.receiver_count() >= idle + tasks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_waits_until_the_server_has_seen_the_flip() {
    let dir = harness::tempdir();
    let member = Member::start(&dir.path().join("member")).await.unwrap();
    let store = Store::connect(vec![member.endpoint().to_owned()], None).await.unwrap();
    let key = format!("{}things.g.example.com", prefix(builtin::DEFINITIONS.0, builtin::DEFINITIONS.2));
    put(&store, key.clone(), &definition(false)).await;
    put(&store, format!("{}default", prefix("", "namespaces")), &json!({"metadata": {"name": "default"}})).await;
    let (api, catalog, _policies) = stale_server(&store).await;
    let object =
        json!({"apiVersion": "g.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"n": 1}});
    let collection = target("/apis/g.example.com/v1/namespaces/default/things");
    let made = api.create(&collection, &call(&object), &mut Warnings::default()).await.unwrap();
    assert_eq!(made["spec"], json!({}), "the gate is off");

    // The gate is switched on, and this server does not know. By its old state there would be nothing to write.
    put(&store, key, &definition(true)).await;
    let writer = api.clone();
    let idle = catalog.receiver_count();
    let write = tokio::spawn(async move {
        let intent = Intent::Patch(Patch::parse(MERGE, br#"{"spec":{"n":2}}"#, false, FieldValidation::Warn).unwrap());
        let mut warnings = Warnings::default();
        let done = writer.update(&target(THING), &intent, &call(&Value::Null), &mut warnings).await.unwrap();
        (done["spec"]["n"].clone(), warnings.texts().to_vec())
    });
    until_waiting(&catalog, idle, 1).await;
    assert!(!write.is_finished(), "an answer now would be by the old gates");
    catalog.send_replace(Arc::new(keeper::load(&store, true).await.unwrap()));
    assert_eq!(write.await.unwrap(), (json!(2), Vec::new()));
    member.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_waits_until_the_server_has_seen_the_policy() {
    let dir = harness::tempdir();
    let member = Member::start(&dir.path().join("member")).await.unwrap();
    let store = Store::connect(vec![member.endpoint().to_owned()], None).await.unwrap();
    put(&store, format!("{}default", prefix("", "namespaces")), &json!({"metadata": {"name": "default"}})).await;
    let (api, _catalog, policies) = stale_server(&store).await;
    let collection = target("/api/v1/namespaces/default/configmaps");
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    api.create(&collection, &call(&map("before")), &mut Warnings::default()).await.unwrap();

    // Another server stores a policy that forbids all writes of config maps.
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]});
    let policy = json!({"kind": "ValidatingAdmissionPolicy", "metadata": {"name": "none"}, "spec": {
        "matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false", "message": "no"}]}});
    let binding = json!({"kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "none"},
        "spec": {"policyName": "none", "validationActions": ["Deny"]}});
    put(&store, format!("{}none", prefix(admission::GROUP, admission::POLICIES)), &policy).await;
    put(&store, format!("{}none", prefix(admission::GROUP, admission::BINDINGS)), &binding).await;
    let (creator, deleter) = (api.clone(), api.clone());
    let idle = policies.receiver_count();
    let create = tokio::spawn(async move {
        let done = creator.create(&collection, &call(&map("after")), &mut Warnings::default()).await;
        done.unwrap_err().message
    });
    let delete = tokio::spawn(async move {
        let one = target("/api/v1/namespaces/default/configmaps/before");
        let mut call = call(&Value::Null);
        call.body = Bytes::new();
        deleter.delete(&one, &call, &mut Warnings::default()).await.unwrap_err().message
    });
    until_waiting(&policies, idle, 2).await;
    assert!(!create.is_finished() && !delete.is_finished(), "an answer now would be by no policy");
    policies.send_replace(Arc::new(admission::keeper::load(&store).await.unwrap()));
    let denied = |name: &str| {
        format!(
            "configmaps {name:?} is forbidden: ValidatingAdmissionPolicy 'none' with binding 'none' denied request: no"
        )
    };
    assert_eq!((create.await.unwrap(), delete.await.unwrap()), (denied("after"), denied("before")));
    member.stop().await;
}

/// A server that does not know a kind cannot delete its objects, and removing the namespace would leave them behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_not_removed_by_a_server_that_does_not_know_its_content() {
    let dir = harness::tempdir();
    let member = Member::start(&dir.path().join("member")).await.unwrap();
    let store = Store::connect(vec![member.endpoint().to_owned()], None).await.unwrap();
    let (api, catalog, _policies) = stale_server(&store).await;

    // Another server stores a definition and an object of it, and the namespace is being deleted.
    let key = format!("{}things.g.example.com", prefix(builtin::DEFINITIONS.0, builtin::DEFINITIONS.2));
    put(&store, key, &definition(true)).await;
    let thing = format!("{}n/a", prefix("g.example.com", "things"));
    let metadata = json!({"name": "a", "namespace": "n"});
    put(&store, thing.clone(), &json!({"apiVersion": "g.example.com/v1", "kind": "Thing", "metadata": metadata})).await;
    let namespace = format!("{}n", prefix("", "namespaces"));
    let metadata = json!({"name": "n", "deletionTimestamp": "2026-01-01T00:00:00Z"});
    put(&store, namespace.clone(), &json!({"metadata": metadata, "spec": {"finalizers": ["kubernetes"]}})).await;

    assert!(!janitor::clean(&api).await.unwrap(), "there is something left to do");
    assert!(store.get(&thing).await.unwrap().is_some());
    assert!(store.get(&namespace).await.unwrap().is_some(), "the namespace was removed before its content");
    catalog.send_replace(Arc::new(keeper::load(&store, true).await.unwrap()));
    assert!(janitor::clean(&api).await.unwrap());
    assert!(store.get(&thing).await.unwrap().is_none());
    assert!(store.get(&namespace).await.unwrap().is_none());
    member.stop().await;
}
