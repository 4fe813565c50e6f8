//! The time without writes when a leader dies: Lockgate compared with real etcd, in turn, in one run.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use harness::wait_max;
use tokio::sync::mpsc;

use super::{super::server::Program, Ending, Scenario, World, group::Group, traffic::connect};

pub(super) const SCENARIOS: &[Scenario] =
    &[Scenario { name: "recovery after leader loss", short: false, run: recovery }];

const ROUNDS: usize = 5;
/// A write is begun through each of the others this often.
const PACE: Duration = Duration::from_millis(20);

fn recovery(world: &World, base: &Path) -> Result<Ending> {
    let (mut ours, mut etcd) = (Vec::new(), Vec::new());
    let found = |program: &Program, name: &str| {
        let dir = base.join(name);
        std::fs::create_dir_all(&dir)?;
        Group::found(&dir, &[program, program, program], &[])
    };
    let (mut our_group, mut etcd_group) = (found(&world.ours, "ours")?, found(&world.etcd, "etcd")?);
    for _ in 0..ROUNDS {
        ours.push(once(&mut our_group)?);
        etcd.push(once(&mut etcd_group)?);
    }
    Ok(Ending::Well(format!(
        "median {}, etcd {} (ours {}; etcd {})",
        median(&ours),
        median(&etcd),
        show(&ours),
        show(&etcd)
    )))
}

/// From the kill to the first acknowledged write, through either of the others.
fn once(group: &mut Group) -> Result<Duration> {
    // What starts and elects must have come to rest.
    thread::sleep(Duration::from_millis(1500));
    let leader = group.leader()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let others: Vec<String> =
        group.endpoints().into_iter().enumerate().filter(|(n, _)| *n != leader).map(|(_, e)| e).collect();
    let took = runtime.block_on(async {
        let limit = Duration::from_secs(1);
        let clients = [connect(&others[0], limit).await?, connect(&others[1], limit).await?];
        // Connected before the clock runs.
        for client in &clients {
            client.put(client::Put::new("recovery", "before")).await?;
        }
        group.members[leader].kill();
        let start = Instant::now();
        let (sender, mut done) = mpsc::unbounded_channel();
        let mut pace = tokio::time::interval(PACE);
        // One after the other would measure in steps of the time limit, as what is asked without a leader is lost.
        let took = loop {
            tokio::select! {
                Some(took) = done.recv() => break took,
                _ = pace.tick() => for client in clients.clone() {
                    let sender = sender.clone();
                    tokio::spawn(async move {
                        if client.put(client::Put::new("recovery", "after")).await.is_ok() {
                            // Later ones find nobody waiting.
                            let _ = sender.send(start.elapsed());
                        }
                    });
                },
            }
            if start.elapsed() > wait_max() {
                bail!("no write was acknowledged within {:?} after the leader was killed", wait_max());
            }
        };
        anyhow::Ok(took)
    })?;
    group.restart(leader);
    group.wait_member(leader)?;
    Ok(took)
}

fn median(times: &[Duration]) -> String {
    let mut times = times.to_vec();
    times.sort_unstable();
    show(&times[times.len() / 2..=times.len() / 2])
}

fn show(times: &[Duration]) -> String {
    let texts: Vec<String> = times.iter().map(|time| format!("{:.2} s", time.as_secs_f32())).collect();
    texts.join(", ")
}
