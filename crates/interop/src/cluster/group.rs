//! Several members as one cluster: started, asked for their leader, changed, and compared.

use std::{
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{
    super::{load::number, server::Program},
    member::{Host, Member},
};

const READY_MAX: Duration = Duration::from_secs(40);
const LEADER_MAX: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);

pub struct Group {
    pub members: Vec<Member>,
    pub base: PathBuf,
    /// Given to every member at every start.
    pub flags: Vec<String>,
}

impl Group {
    pub fn new(base: &Path, flags: &[&str]) -> Group {
        Group { members: Vec::new(), base: base.to_owned(), flags: flags.iter().map(|&flag| flag.to_owned()).collect() }
    }

    /// A new cluster of these programs on loopback, ready to serve.
    pub fn found(base: &Path, programs: &[&Program], flags: &[&str]) -> Result<Group> {
        let hosts = vec![Host::default(); programs.len()];
        Group::found_at(base, programs, &hosts, flags)
    }

    pub fn found_at(base: &Path, programs: &[&Program], hosts: &[Host], flags: &[&str]) -> Result<Group> {
        let mut group = Group::prepare(base, programs, hosts, flags)?;
        group.begin()?;
        Ok(group)
    }

    /// Members that do not run yet.
    pub fn prepare(base: &Path, programs: &[&Program], hosts: &[Host], flags: &[&str]) -> Result<Group> {
        let mut group = Group::new(base, flags);
        for (n, (program, host)) in programs.iter().zip(hosts).enumerate() {
            group.members.push(Member::new(&format!("m{}", n + 1), program, base, host.clone())?);
        }
        Ok(group)
    }

    /// Starts all as a new cluster.
    pub fn begin(&mut self) -> Result<()> {
        for n in 0..self.members.len() {
            self.start_as(n, "new")?;
        }
        self.wait_ready()
    }

    pub fn initial(&self) -> String {
        self.members.iter().map(Member::entry).collect::<Vec<_>>().join(",")
    }

    pub fn start_as(&mut self, n: usize, state: &str) -> Result<()> {
        let initial = self.initial();
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.members[n].start(&initial, state, &flags)
    }

    /// Starts a member on the dir that it has.
    pub fn restart(&mut self, n: usize) -> Result<()> {
        self.start_as(n, "existing")
    }

    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(Member::endpoint).collect()
    }

    /// Until each running member answers a linearizable read.
    pub fn wait_ready(&mut self) -> Result<()> {
        for n in 0..self.members.len() {
            self.wait_member(n)?;
        }
        Ok(())
    }

    pub fn wait_member(&mut self, n: usize) -> Result<()> {
        let start = Instant::now();
        let mut last = String::new();
        while start.elapsed() < READY_MAX {
            if let Some(status) = self.members[n].try_end()? {
                let member = &self.members[n];
                bail!("{} ended with {status}; the end of its log:\n{}", member.name, member.log_tail());
            }
            if !self.members[n].running() {
                return Ok(());
            }
            match self.members[n].ask("/v3/kv/range", &json!({"key": "eA=="})) {
                Ok(_) => return Ok(()),
                Err(error) => last = format!("{error:#}"),
            }
            thread::sleep(POLL);
        }
        bail!("{} is not ready after {READY_MAX:?} ({last}):\n{}", self.members[n].name, self.members[n].log_tail())
    }

    pub fn status(&self, n: usize) -> Result<Value> {
        self.members[n].ask("/v3/maintenance/status", &json!({}))
    }

    pub fn id(&self, n: usize) -> Result<u64> {
        number(&self.status(n)?["header"]["member_id"])
    }

    pub fn revision(&self, n: usize) -> Result<u64> {
        number(&self.status(n)?["header"]["revision"])
    }

    /// The member that leads, with the highest term, once there is one.
    pub fn leader(&self) -> Result<usize> {
        self.leader_among(&|_| true)
    }

    /// As `leader`, asking only those members: some may be cut off or paused.
    pub fn leader_among(&self, asked: &dyn Fn(usize) -> bool) -> Result<usize> {
        let start = Instant::now();
        while start.elapsed() < LEADER_MAX {
            let mut best: Option<(u64, usize)> = None;
            for n in (0..self.members.len()).filter(|n| self.members[*n].running() && asked(*n)) {
                let Ok(status) = self.status(n) else { continue };
                if number(&status["leader"])? == number(&status["header"]["member_id"])? {
                    best = best.max(Some((number(&status["raftTerm"])?, n)));
                }
            }
            if let Some((_, n)) = best {
                return Ok(n);
            }
            thread::sleep(POLL);
        }
        bail!("no member leads after {LEADER_MAX:?}")
    }

    pub fn follower(&self) -> Result<usize> {
        let leader = self.leader()?;
        let other = (0..self.members.len()).find(|n| *n != leader && self.members[*n].running());
        other.context("only one member runs")
    }

    /// Some member that runs, to steer through.
    fn any(&self) -> Result<&Member> {
        self.members.iter().find(|member| member.running()).context("no member runs")
    }

    /// Changes are refused while members are not connected long enough: asked again until one is taken.
    pub fn change(&self, path: &str, body: &Value) -> Result<Value> {
        let start = Instant::now();
        loop {
            match self.any()?.ask(path, body) {
                Ok(answer) => return Ok(answer),
                Err(error) if start.elapsed() > READY_MAX => return Err(error),
                Err(error) => {
                    let text = format!("{error:#}");
                    let later =
                        ["unhealthy", "not enough started", "in sync with leader", "leader", "timed out", "asking"];
                    ensure!(later.iter().any(|word| text.contains(word)), "{text}");
                }
            }
            thread::sleep(5 * POLL);
        }
    }

    /// Adds a member with an empty dir and starts it.
    pub fn add(&mut self, name: &str, program: &Program, host: Host, learner: bool) -> Result<usize> {
        let member = Member::new(name, program, &self.base, host)?;
        self.change("/v3/cluster/member/add", &json!({"peerURLs": [member.peer_url()], "isLearner": learner}))?;
        self.members.push(member);
        let n = self.members.len() - 1;
        self.start_as(n, "existing")?;
        Ok(n)
    }

    pub fn promote(&self, id: u64) -> Result<()> {
        self.change("/v3/cluster/member/promote", &json!({"ID": id.to_string()})).map(drop)
    }

    /// Takes a member out of the cluster and ends its process; its dir and log stay.
    pub fn remove(&mut self, n: usize, id: u64) -> Result<Member> {
        let mut gone = self.members.remove(n);
        self.change("/v3/cluster/member/remove", &json!({"ID": id.to_string()}))?;
        // A removed member ends by itself, sooner or later; it is not waited for.
        gone.kill()?;
        Ok(gone)
    }

    pub fn move_leader(&self, to: usize) -> Result<()> {
        let start = Instant::now();
        loop {
            let from = self.leader()?;
            if from == to {
                return Ok(());
            }
            let body = json!({"targetID": self.id(to)?.to_string()});
            let moved = self.members[from].ask("/v3/maintenance/transfer-leadership", &body);
            if start.elapsed() > LEADER_MAX {
                moved?;
                bail!("{} does not lead {LEADER_MAX:?} after it was asked to", self.members[to].name);
            }
            thread::sleep(POLL);
        }
    }

    pub fn cluster_version(&self, n: usize) -> Result<String> {
        let version: Value = serde_json::from_str(&self.members[n].get("/version")?)?;
        Ok(version["etcdcluster"].as_str().unwrap_or_default().to_owned())
    }

    pub fn storage_version(&self, n: usize) -> Result<String> {
        Ok(self.status(n)?["storageVersion"].as_str().unwrap_or_default().to_owned())
    }

    /// Every running member's hash at the same revision, which all have reached.
    pub fn hashes(&self) -> Result<Vec<(String, String)>> {
        let running: Vec<usize> = (0..self.members.len()).filter(|n| self.members[*n].running()).collect();
        let revision = self.wait_level(&running)?;
        let hash = |n: &usize| {
            let answer = self.members[*n].ask("/v3/maintenance/hashkv", &json!({"revision": revision}))?;
            let hash = format!("{} since {} at {revision}", answer["hash"], answer["compact_revision"]);
            Ok((self.members[*n].name.clone(), hash))
        };
        running.iter().map(hash).collect()
    }

    /// Until all have applied the same; the revision.
    fn wait_level(&self, running: &[usize]) -> Result<u64> {
        let start = Instant::now();
        loop {
            let revisions: Result<Vec<u64>> = running.iter().map(|n| self.revision(*n)).collect();
            match &revisions {
                Ok(all) if all.windows(2).all(|pair| pair[0] == pair[1]) => {
                    return Ok(*all.first().context("none runs")?);
                }
                _ if start.elapsed() > READY_MAX => bail!("members stay at different revisions: {revisions:?}"),
                _ => thread::sleep(POLL),
            }
        }
    }

    pub fn stop_all(&mut self) -> Result<()> {
        for member in self.members.iter_mut().filter(|member| member.running()) {
            member.kill()?;
        }
        Ok(())
    }
}
