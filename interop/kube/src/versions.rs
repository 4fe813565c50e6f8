//! Two versions of one kind without a webhook, merged into one definition, and a reflector that keeps what it sees.

use anyhow::{Result, ensure};
use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, CustomResourceExt, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
    core::crd::merge_crds,
    runtime::{
        WatchStreamExt, reflector,
        wait::{await_condition, conditions},
        watcher,
    },
};

use crate::{WAIT_MAX, until};

const CRD: &str = "boxes.clux.dev";

mod v1 {
    #[derive(kube::CustomResource, Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    #[kube(group = "clux.dev", version = "v1", kind = "Box", plural = "boxes", namespaced)]
    pub struct BoxSpec {
        pub name: String,
        pub weight: i32,
    }
}

mod v2 {
    #[derive(kube::CustomResource, Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    #[kube(group = "clux.dev", version = "v2", kind = "Box", plural = "boxes", namespaced)]
    pub struct BoxSpec {
        pub name: String,
        pub color: Option<String>,
    }
}

pub async fn run(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let (first, second): (Api<v1::Box>, Api<v2::Box>) =
        (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
    define(&definitions, "v1").await?;
    let params = PatchParams::apply("versions").force();
    let light = v1::Box::new("old", v1::BoxSpec { name: "old".to_owned(), weight: 5 });
    ensure!(first.patch("old", &params, &Patch::Apply(&light)).await?.spec.weight == 5, "an object of v1");
    ensure!(second.get("old").await?.spec.color.is_none(), "the same by v2");
    let red = v2::Box::new("new", v2::BoxSpec { name: "new".to_owned(), color: Some("red".to_owned()) });
    let kept = second.patch("new", &params, &Patch::Apply(&red)).await?;
    ensure!(kept.spec.color.is_none(), "v1 is stored, and has no place for a color");
    ensure!(first.get("new").await.is_err(), "an object without a weight is none of v1");
    define(&definitions, "v2").await?;
    let kept = second.patch("new", &params, &Patch::Apply(&red)).await?;
    ensure!(kept.spec.color.as_deref() == Some("red"), "v2 is stored now");
    reflect(&second).await?;
    definitions.delete(CRD, &DeleteParams::default()).await?;
    until(|| async { Ok(definitions.get_opt(CRD).await?.is_none()) }).await
}

async fn define(definitions: &Api<CustomResourceDefinition>, stored: &str) -> Result<()> {
    let merged = merge_crds(vec![v1::Box::crd(), v2::Box::crd()], stored)?;
    definitions.patch(CRD, &PatchParams::apply("versions").force(), &Patch::Apply(&merged)).await?;
    let established = await_condition(definitions.clone(), CRD, conditions::is_crd_established());
    tokio::time::timeout(WAIT_MAX, established).await??;
    Ok(())
}

/// A store in memory follows what is made and deleted.
async fn reflect(boxes: &Api<v2::Box>) -> Result<()> {
    let (reader, writer) = reflector::store::<v2::Box>();
    let stream = watcher(boxes.clone(), watcher::Config::default()).default_backoff().reflect(writer);
    let running = tokio::spawn(stream.for_each(|_| async {}));
    tokio::time::timeout(WAIT_MAX, reader.wait_until_ready()).await??;
    let names = || {
        let mut names: Vec<_> = reader.state().iter().map(|object| object.name_any()).collect();
        names.sort();
        names
    };
    ensure!(names() == ["new", "old"], "the state is {:?}", names());
    boxes.delete("old", &DeleteParams::default()).await?;
    until(|| async { Ok(names() == ["new"]) }).await?;
    running.abort();
    Ok(())
}
