//! A controller that keeps a config map beside each object, and cleans it up through a finalizer.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, PostParams},
    runtime::{
        Controller,
        controller::Action,
        finalizer::{Event, finalizer},
        watcher,
    },
};

use crate::{Foo, until};

const FINALIZER: &str = "foos.clux.dev/cleanup";

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

pub async fn run(client: &Client, foos: &Api<Foo>) -> Result<()> {
    let again = |_: Arc<Foo>, error: &Failed, _: Arc<Client>| {
        eprintln!("reconcile failed: {error}");
        Action::requeue(Duration::from_secs(1))
    };
    let controller = Controller::new(foos.clone(), watcher::Config::default());
    let running = tokio::spawn(controller.run(reconcile, again, Arc::new(client.clone())).for_each(|_| async {}));
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    until(|| async { Ok(maps.get_opt("for-baz").await?.is_some()) }).await?;
    ensure!(foos.get("baz").await?.finalizers() == [FINALIZER], "the finalizer");
    foos.delete("baz", &DeleteParams::default()).await?;
    until(|| async { Ok(foos.get_opt("baz").await?.is_none() && maps.get_opt("for-baz").await?.is_none()) }).await?;
    running.abort();
    Ok(())
}

async fn reconcile(foo: Arc<Foo>, client: Arc<Client>) -> Result<Action, Failed> {
    let client = Client::clone(&client);
    let foos: Api<Foo> = Api::default_namespaced(client.clone());
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let act = |event| async move {
        match event {
            Event::Apply(foo) => keep(&maps, &foo).await,
            Event::Cleanup(foo) => clean(&maps, &foo).await,
        }
    };
    finalizer(&foos, FINALIZER, foo, act).await.map_err(|error| Failed(error.to_string()))
}

fn map_name(foo: &Foo) -> String {
    format!("for-{}", foo.name_any())
}

async fn keep(maps: &Api<ConfigMap>, foo: &Foo) -> Result<Action, Failed> {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(map_name(foo));
    match maps.create(&PostParams::default(), &map).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => return Err(Failed(error.to_string())),
    }
    Ok(Action::requeue(Duration::from_secs(60)))
}

async fn clean(maps: &Api<ConfigMap>, foo: &Foo) -> Result<Action, Failed> {
    match maps.delete(&map_name(foo), &DeleteParams::default()).await {
        Err(error) if !matches!(&error, kube::Error::Api(status) if status.code == 404) => {
            Err(Failed(error.to_string()))
        }
        _ => Ok(Action::await_change()),
    }
}
