//! Several members as one cluster: started, asked for their leader, changed, and compared.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{
    super::{
        load::number,
        server::Program,
        wait::{until_ok, until_some},
    },
    member::{Host, Member},
};

/// Parts of the errors of a change that is refused for a moment: members are not connected long enough, a learner has not
/// caught up, nobody leads, the answer was late, or the member that was asked ended meanwhile.
const LATER: [&str; 7] =
    ["unhealthy", "not enough started", "in sync with leader", "leader", "timed out", "onnection", "os error"];

pub(crate) struct Group {
    pub members: Vec<Member>,
    pub base: PathBuf,
    /// Given to every member at every start.
    pub flags: Vec<String>,
}

impl Group {
    pub(crate) fn new(base: &Path, flags: &[&str]) -> Group {
        Group { members: Vec::new(), base: base.to_owned(), flags: flags.iter().map(|&flag| flag.to_owned()).collect() }
    }

    /// A new cluster of these programs on loopback, ready to serve.
    pub(crate) fn found(base: &Path, programs: &[&Program], flags: &[&str]) -> Result<Group> {
        let hosts = vec![Host::default(); programs.len()];
        Group::found_at(base, programs, &hosts, flags)
    }

    pub(crate) fn found_at(base: &Path, programs: &[&Program], hosts: &[Host], flags: &[&str]) -> Result<Group> {
        let mut group = Group::prepare(base, programs, hosts, flags);
        group.begin()?;
        Ok(group)
    }

    /// Members that do not run yet.
    pub(crate) fn prepare(base: &Path, programs: &[&Program], hosts: &[Host], flags: &[&str]) -> Group {
        let mut group = Group::new(base, flags);
        for (n, (program, host)) in programs.iter().zip(hosts).enumerate() {
            group.members.push(Member::new(&format!("m{}", n + 1), program, base, host.clone()));
        }
        group
    }

    /// Starts all as a new cluster.
    pub(crate) fn begin(&mut self) -> Result<()> {
        for n in 0..self.members.len() {
            self.start_as(n, "new");
        }
        self.wait_ready()
    }

    pub(crate) fn initial(&self) -> String {
        self.members.iter().map(Member::entry).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn start_as(&mut self, n: usize, state: &str) {
        let initial = self.initial();
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.members[n].start(&initial, state, &flags);
    }

    /// Starts a member on the dir that it has.
    pub(crate) fn restart(&mut self, n: usize) {
        self.start_as(n, "existing");
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(Member::endpoint).collect()
    }

    /// Waits until each running member answers a linearizable read.
    pub(crate) fn wait_ready(&mut self) -> Result<()> {
        for n in 0..self.members.len() {
            self.wait_member(n)?;
        }
        Ok(())
    }

    /// Waits until a member answers a linearizable read: it has applied what was committed before. Returns at once if the
    /// member does not run.
    pub(crate) fn wait_member(&mut self, n: usize) -> Result<()> {
        let member = &mut self.members[n];
        if !member.running() {
            return Ok(());
        }
        let mut last = String::new();
        let waited = until_some(&format!("{} is ready", member.name.clone()), || {
            if let Some(status) = member.try_end() {
                bail!("{} ended with {status}; the end of its log:\n{}", member.name, member.log_tail());
            }
            match member.ask_again_later("/v3/kv/range", &json!({"key": "eA=="})) {
                Ok(_) => Ok(Some(())),
                Err(error) => {
                    last = format!("{error:#}");
                    Ok(None)
                }
            }
        });
        waited.with_context(|| last)
    }

    pub(crate) fn status(&self, n: usize) -> Result<Value> {
        self.members[n].ask("/v3/maintenance/status", &json!({}))
    }

    pub(crate) fn id(&self, n: usize) -> Result<u64> {
        number(&self.status(n)?["header"]["member_id"])
    }

    pub(crate) fn revision(&self, n: usize) -> Result<u64> {
        number(&self.status(n)?["header"]["revision"])
    }

    /// The member that leads, with the highest term, once there is one.
    pub(crate) fn leader(&self) -> Result<usize> {
        self.leader_among(&|_| true)
    }

    /// The leader among the members that may be asked: others may be cut off or paused.
    pub(crate) fn leader_among(&self, asked: &dyn Fn(usize) -> bool) -> Result<usize> {
        until_some("a member leads", || {
            let mut best: Option<(u64, usize)> = None;
            for n in (0..self.members.len()).filter(|n| self.members[*n].running() && asked(*n)) {
                let Ok(status) = self.status(n) else { continue };
                if number(&status["leader"])? == number(&status["header"]["member_id"])? {
                    best = best.max(Some((number(&status["raftTerm"])?, n)));
                }
            }
            Ok(best.map(|(_, n)| n))
        })
    }

    pub(crate) fn follower(&self) -> Result<usize> {
        let leader = self.leader()?;
        let other = (0..self.members.len()).find(|n| *n != leader && self.members[*n].running());
        other.context("only one member runs")
    }

    /// A member that runs, for requests that any member answers.
    fn any(&self) -> Result<&Member> {
        self.members.iter().find(|member| member.running()).context("no member runs")
    }

    /// Asks for a change of the members until it is made. `is_made` looks at the error of a repeated request, whose first
    /// one may have been carried out without an answer.
    fn change(&self, path: &str, body: &Value, is_made: &[&str]) -> Result<Option<Value>> {
        let mut last = None;
        let waited = until_some(&format!("{path} is done"), || {
            let error = match self.any()?.ask_again_later(path, body) {
                Ok(answer) => return Ok(Some(Some(answer))),
                Err(error) => format!("{error:#}"),
            };
            if last.is_some() && is_made.iter().any(|part| error.contains(part)) {
                return Ok(Some(None));
            }
            ensure!(LATER.iter().any(|part| error.contains(part)), "{error}");
            last = Some(error);
            Ok(None)
        });
        waited.with_context(|| last.unwrap_or_default())
    }

    /// Adds a member with an empty dir and starts it.
    pub(crate) fn add(&mut self, name: &str, program: &Program, host: Host, learner: bool) -> Result<usize> {
        let (n, _) = self.add_stopped(name, program, host, learner)?;
        self.start_as(n, "existing");
        Ok(n)
    }

    /// Adds a member that does not run; its place and id.
    pub(crate) fn add_stopped(
        &mut self,
        name: &str,
        program: &Program,
        host: Host,
        learner: bool,
    ) -> Result<(usize, u64)> {
        let member = Member::new(name, program, &self.base, host);
        let body = json!({"peerURLs": [member.peer_url()], "isLearner": learner});
        let id = match self.change("/v3/cluster/member/add", &body, &["Peer URLs already exists"])? {
            Some(answer) => number(&answer["member"]["ID"])?,
            None => self.id_of(&member.peer_url())?,
        };
        self.members.push(member);
        Ok((self.members.len() - 1, id))
    }

    fn id_of(&self, peer_url: &str) -> Result<u64> {
        let list = self.any()?.ask_until_ok("/v3/cluster/member/list", &json!({}))?;
        let mut members = list["members"].as_array().into_iter().flatten();
        let member = members.find(|member| member["peerURLs"][0] == peer_url);
        number(&member.with_context(|| format!("no member has {peer_url}: {list}"))?["ID"])
    }

    pub(crate) fn promote(&self, id: u64) -> Result<()> {
        let body = json!({"ID": id.to_string()});
        // The quote excludes the refusal of a learner that is not in sync.
        self.change("/v3/cluster/member/promote", &body, &["promote a learner member\""]).map(drop)
    }

    /// Takes a member out of the cluster and ends its process; its dir and log stay.
    pub(crate) fn remove(&mut self, n: usize, id: u64) -> Result<Member> {
        let mut gone = self.members.remove(n);
        self.change("/v3/cluster/member/remove", &json!({"ID": id.to_string()}), &["member not found"])?;
        // A removed member ends by itself, sooner or later; it is not waited for.
        gone.kill();
        Ok(gone)
    }

    pub(crate) fn move_leader(&self, to: usize) -> Result<()> {
        until_some(&format!("{} leads", self.members[to].name), || {
            let from = self.leader()?;
            if from == to {
                return Ok(Some(()));
            }
            if let Ok(id) = self.id(to) {
                let body = json!({"targetID": id.to_string()});
                // A transfer that is refused or times out is asked for again.
                let _ = self.members[from].ask_again_later("/v3/maintenance/transfer-leadership", &body);
            }
            Ok(None)
        })
    }

    pub(crate) fn cluster_version(&self, n: usize) -> Result<String> {
        let version: Value = serde_json::from_str(&self.members[n].get("/version")?)?;
        Ok(version["etcdcluster"].as_str().unwrap_or_default().to_owned())
    }

    pub(crate) fn storage_version(&self, n: usize) -> Result<String> {
        Ok(self.status(n)?["storageVersion"].as_str().unwrap_or_default().to_owned())
    }

    /// Every running member's hash at the same revision, which all have reached.
    pub(crate) fn hashes(&self) -> Result<Vec<(String, String)>> {
        let running: Vec<usize> = (0..self.members.len()).filter(|n| self.members[*n].running()).collect();
        let revision = self.wait_level(&running)?;
        running.iter().map(|n| Ok((self.members[*n].name.clone(), self.hash(*n, revision)?))).collect()
    }

    /// A member's hash at a revision that it has reached.
    pub(crate) fn hash(&self, n: usize, revision: u64) -> Result<String> {
        let answer = self.members[n].ask("/v3/maintenance/hashkv", &json!({"revision": revision}))?;
        Ok(format!("{} since {} at {revision}", answer["hash"], answer["compact_revision"]))
    }

    /// Fails if two running members have different hashes at the same revision; else returns the hashes.
    pub(crate) fn check_hashes(&self) -> Result<Vec<(String, String)>> {
        let hashes = self.hashes()?;
        ensure!(hashes.windows(2).all(|pair| pair[0].1 == pair[1].1), "members have different hashes: {hashes:?}");
        Ok(hashes)
    }

    /// Waits until all members have applied the same, and returns the revision.
    fn wait_level(&self, running: &[usize]) -> Result<u64> {
        until_ok("all members have the same revision", || {
            let revisions: Vec<u64> = running.iter().map(|n| self.revision(*n)).collect::<Result<_>>()?;
            ensure!(revisions.windows(2).all(|pair| pair[0] == pair[1]), "the revisions are {revisions:?}");
            revisions.first().copied().context("no member runs")
        })
    }

    /// SIGKILL for all members.
    pub(crate) fn stop_all(&mut self) {
        self.members.iter_mut().for_each(Member::kill);
    }
}
