//! Three controllers that want to lead, by the crate `kube-lease-manager`: one does, and when it dies or leaves another takes over.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

use crate::WAIT_MAX;

const LEASE: &str = "conductor";

struct Candidate {
    name: &'static str,
    leads: watch::Receiver<bool>,
    task: JoinHandle<kube_lease_manager::Result<LeaseManager>>,
}

pub async fn run(client: &Client) -> Result<()> {
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    let mut candidates = try_join_all(["ada", "bob", "cleo"].map(|name| stand(client, name))).await?;
    let killed = leader(&leases, &mut candidates).await.context("a first leader")?;
    // It dies without a word: its lease has to run out.
    killed.task.abort();
    let leaving = leader(&leases, &mut candidates).await.context("after the leader's death")?;
    ensure!(leaving.name != killed.name, "{} is dead", killed.name);
    // It leaves, and gives the lease back.
    drop(leaving.leads);
    leaving.task.await??;
    let last = leader(&leases, &mut candidates).await.context("after the leader left")?;
    ensure!(candidates.is_empty() && last.name != leaving.name, "{} left", leaving.name);
    let transitions = leases.get(LEASE).await?.spec.and_then(|spec| spec.lease_transitions);
    ensure!(transitions >= Some(2), "two changes of the leader, {transitions:?} counted");
    last.task.abort();
    Ok(())
}

async fn stand(client: &Client, name: &'static str) -> Result<Candidate> {
    let builder = LeaseManagerBuilder::new(client.clone(), LEASE).with_identity(name);
    let manager = builder.with_grace(1).with_duration(3).build().await?;
    let (leads, task) = manager.watch().await;
    Ok(Candidate { name, leads, task })
}

/// Takes the one who leads out of the candidates. The lease must name it, and at no time may there be two.
async fn leader(leases: &Api<Lease>, candidates: &mut Vec<Candidate>) -> Result<Candidate> {
    let began = Instant::now();
    loop {
        let leading: Vec<usize> = (0..candidates.len()).filter(|&at| *candidates[at].leads.borrow()).collect();
        ensure!(leading.len() <= 1, "{} lead at once", leading.len());
        if let [at] = leading[..] {
            let holder = leases.get(LEASE).await?.spec.and_then(|spec| spec.holder_identity);
            ensure!(holder.as_deref() == Some(candidates[at].name), "the lease is held by {holder:?}");
            return Ok(candidates.swap_remove(at));
        }
        ensure!(began.elapsed() < WAIT_MAX, "nobody leads");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
