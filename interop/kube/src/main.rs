//! A custom resource from its definition to its end, through kube: discovery, objects, errors, applies, both kinds of watchers, metadata
//! alone, a controller with a finalizer, an election of a leader, an admission policy, pages, deletion of many, two versions, a reflector. Says `ok` at the end, or fails at
//! the first difference.

mod controller;
mod election;
mod policies;
mod versions;

use std::{future::Future, time::Duration};

use anyhow::{Context, Result, ensure};
use futures::TryStreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, CustomResource, CustomResourceExt, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, PartialObjectMeta},
    discovery::Discovery,
    runtime::{
        WatchStreamExt,
        wait::{await_condition, conditions},
        watcher,
    },
};
use serde_json::json;

const CRD: &str = "foos.clux.dev";
pub const WAIT_MAX: Duration = Duration::from_secs(15);

#[derive(CustomResource, Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[kube(group = "clux.dev", version = "v1", kind = "Foo", namespaced, status = "FooStatus", shortname = "f")]
pub struct FooSpec {
    name: String,
    info: Option<String>,
    #[serde(default)]
    replicas: i32,
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct FooStatus {
    is_bad: bool,
}

fn foo(name: &str) -> Foo {
    Foo::new(name, FooSpec { name: name.to_owned(), info: None, replicas: 1 })
}

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::try_default().await?;
    define(&client).await.context("definition")?;
    let foos: Api<Foo> = Api::default_namespaced(client.clone());
    objects(&client, &foos).await.context("objects")?;
    applies(&foos).await.context("applies")?;
    watches(&foos).await.context("watches")?;
    controller::run(&client, &foos).await.context("controller")?;
    election::run(&client).await.context("election")?;
    policies::run(&client, &foos).await.context("policies")?;
    many(&foos).await.context("many")?;
    versions::run(&client).await.context("versions")?;
    Api::<CustomResourceDefinition>::all(client).delete(CRD, &DeleteParams::default()).await?;
    println!("ok");
    Ok(())
}

async fn define(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    if let Ok(left) = definitions.delete(CRD, &DeleteParams::default()).await {
        drop(left);
        until(|| async { Ok(definitions.get_opt(CRD).await?.is_none()) }).await?;
    }
    definitions.create(&PostParams::default(), &Foo::crd()).await?;
    let established = await_condition(definitions, CRD, conditions::is_crd_established());
    tokio::time::timeout(WAIT_MAX, established).await??;
    let discovery = Discovery::new(client.clone()).run().await?;
    ensure!(discovery.has_group("clux.dev"), "discovery does not have the group");
    Ok(())
}

async fn objects(client: &Client, foos: &Api<Foo>) -> Result<()> {
    let made = foos.create(&PostParams::default(), &foo("baz")).await?;
    ensure!(made.metadata.generation == Some(1), "generation of a new object");
    ensure!(code(foos.create(&PostParams::default(), &foo("baz")).await)?.0 == 409, "the same again");
    let patch = Patch::Merge(json!({"spec": {"replicas": 3}}));
    let patched = foos.patch("baz", &PatchParams::default(), &patch).await?;
    ensure!((patched.spec.replicas, patched.metadata.generation) == (3, Some(2)), "a patch");
    let status = Patch::Merge(json!({"status": FooStatus { is_bad: true }}));
    let patched = foos.patch_status("baz", &PatchParams::default(), &status).await?;
    ensure!(patched.status.is_some_and(|status| status.is_bad) && patched.metadata.generation == Some(2), "a status");
    let dynamic: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &ApiResource::erase::<Foo>(&()));
    let bad = json!({"apiVersion": "clux.dev/v1", "kind": "Foo", "metadata": {"name": "bad"}, "spec": {}});
    let refused = code(dynamic.create(&PostParams::default(), &serde_json::from_value(bad)?).await)?;
    let expected = (422, "Foo.clux.dev \"bad\" is invalid: spec.name: Required value".to_owned());
    ensure!(refused == expected, "refused with {refused:?}");
    Ok(())
}

/// Two managers of one object: a conflict, a forced apply, and what goes when its owner leaves it out.
async fn applies(foos: &Api<Foo>) -> Result<()> {
    let config = |spec: serde_json::Value| {
        Patch::Apply(json!({"apiVersion": "clux.dev/v1", "kind": "Foo", "metadata": {"name": "shared"}, "spec": spec}))
    };
    let (one, two) = (PatchParams::apply("one"), PatchParams::apply("two"));
    let made = foos.patch("shared", &one, &config(json!({"name": "shared", "info": "a", "replicas": 2}))).await?;
    ensure!(made.metadata.generation == Some(1), "an apply makes what is not there");
    let again = foos.patch("shared", &one, &config(json!({"name": "shared", "info": "a", "replicas": 2}))).await?;
    ensure!(again.metadata == made.metadata, "the same again changes nothing");
    let refused = code(foos.patch("shared", &two, &config(json!({"info": "b"}))).await)?;
    let expected = "Apply failed with 1 conflict: conflict with \"one\": .spec.info";
    ensure!(refused == (409, expected.to_owned()), "refused with {refused:?}");
    let forced = foos.patch("shared", &two.clone().force(), &config(json!({"info": "b"}))).await?;
    ensure!(forced.spec.info.as_deref() == Some("b"), "a forced apply");
    let managers: Vec<_> = forced.managed_fields().iter().filter_map(|entry| entry.manager.as_deref()).collect();
    ensure!(managers == ["one", "two"], "managed by {managers:?}");
    let left = foos.patch("shared", &two, &config(json!({}))).await?;
    ensure!(left.spec.info.is_none(), "nobody wants it any more");
    foos.delete("shared", &DeleteParams::default()).await?;
    Ok(())
}

async fn watches(foos: &Api<Foo>) -> Result<()> {
    let streaming = watcher::Config::default().streaming_lists();
    for (label, config) in [("list-watch", watcher::Config::default()), ("streaming-lists", streaming)] {
        let mut events = Box::pin(watcher(foos.clone(), config).applied_objects());
        let first = tokio::time::timeout(WAIT_MAX, events.try_next()).await??;
        ensure!(first.is_some_and(|foo| foo.name_any() == "baz"), "{label}: the state");
        let patch = Patch::Merge(json!({"metadata": {"labels": {"by": label}}}));
        foos.patch("baz", &PatchParams::default(), &patch).await?;
        let second = tokio::time::timeout(WAIT_MAX, events.try_next()).await??;
        ensure!(second.is_some_and(|foo| foo.labels().get("by").is_some_and(|by| by == label)), "{label}: a change");
    }
    let metadata: Api<PartialObjectMeta<Foo>> = Api::default_namespaced(foos.clone().into_client());
    let mut events = Box::pin(watcher(metadata, watcher::Config::default()).applied_objects());
    let first = tokio::time::timeout(WAIT_MAX, events.try_next()).await??;
    ensure!(first.is_some_and(|meta| meta.name_any() == "baz"), "metadata alone");
    Ok(())
}

async fn many(foos: &Api<Foo>) -> Result<()> {
    for i in 0..5 {
        foos.create(&PostParams::default(), &foo(&format!("p{i}"))).await?;
    }
    let page = foos.list(&ListParams::default().limit(2)).await?;
    ensure!((page.items.len(), page.metadata.remaining_item_count) == (2, Some(3)), "a page");
    foos.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    ensure!(foos.list(&ListParams::default()).await?.items.is_empty(), "all are gone");
    Ok(())
}

/// Code and text of a refusal.
fn code<T>(result: kube::Result<T>) -> Result<(u16, String)> {
    match result {
        Err(kube::Error::Api(status)) => Ok((status.code, status.message)),
        Err(other) => Err(other.into()),
        Ok(_) => anyhow::bail!("should have been refused"),
    }
}

pub async fn until<F: Future<Output = Result<bool>>>(mut holds: impl FnMut() -> F) -> Result<()> {
    let waiting = async {
        while !holds().await? {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    };
    tokio::time::timeout(WAIT_MAX, waiting).await?
}
