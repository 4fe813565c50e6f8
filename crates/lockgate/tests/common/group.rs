//! Several members of one cluster.

use std::{
    fs::File,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use super::{BINARY, Ended, Member, free_port};

/// Members `m0`, `m1`, … Dropping it kills them.
pub struct Group {
    dir: TempDir,
    /// Client and peer ports.
    ports: Vec<(u16, u16)>,
    members: Vec<Option<Member>>,
}

impl Group {
    /// Starts a new cluster and waits until all members serve.
    pub fn start(count: usize, flags: &[&str]) -> Group {
        let ports = (0..count).map(|_| (free_port(), free_port())).collect();
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut group = Group { dir, ports, members: Vec::new() };
        group.members = (0..count).map(|at| Some(group.spawn(at, flags))).collect();
        for member in group.members.iter_mut().flatten() {
            member.wait_ready().unwrap_or_else(|ended| panic!("{}", ended.log));
        }
        group
    }

    /// Adds a learner and waits until it serves. Returns which member it is.
    pub async fn add_learner(&mut self, flags: &[&str]) -> usize {
        let at = self.ports.len();
        self.ports.push((free_port(), free_port()));
        let url = format!("http://127.0.0.1:{}", self.ports[at].1);
        self.member(0).client().await.member_add(vec![url], true).await.expect("member add");
        let flags = [flags, &["--initial-cluster-state=existing"]].concat();
        let mut member = self.spawn(at, &flags);
        member.wait_ready().unwrap_or_else(|ended| panic!("{}", ended.log));
        self.members.push(Some(member));
        at
    }

    pub fn member(&self, at: usize) -> &Member {
        self.members[at].as_ref().expect("a running member")
    }

    /// Stops a member and starts it with other flags.
    pub fn restart(&mut self, at: usize, flags: &[&str]) {
        self.members[at].take().expect("a running member").stop();
        let mut member = self.spawn(at, flags);
        member.wait_ready().unwrap_or_else(|ended| panic!("{}", ended.log));
        self.members[at] = Some(member);
    }

    /// Starts a member that has ended by itself, with points at which it is to fail.
    pub fn start_again(&mut self, at: usize, failpoints: &str) {
        self.start_as(at, Path::new(BINARY), failpoints);
    }

    /// Starts another program in the place of a member that has ended.
    pub fn start_as(&mut self, at: usize, program: &Path, failpoints: &str) {
        let mut command = Command::new(program);
        command.env("GOFAIL_FAILPOINTS", failpoints);
        let mut member = self.spawn_command(at, command);
        member.wait_ready().unwrap_or_else(|ended| panic!("{}", ended.log));
        self.members[at] = Some(member);
    }

    /// Waits until a member ends by itself.
    pub fn wait_end(&mut self, at: usize) -> Ended {
        self.members[at].take().expect("a running member").wait_end()
    }

    pub fn stop(&mut self, at: usize) {
        self.members[at].take().expect("a running member").stop();
    }

    fn spawn(&self, at: usize, flags: &[&str]) -> Member {
        let mut command = Command::new(BINARY);
        command.args(flags);
        self.spawn_command(at, command)
    }

    /// By a command that ends in a program and its first flags.
    fn spawn_command(&self, at: usize, mut command: Command) -> Member {
        let peer = |at: usize| format!("http://127.0.0.1:{}", self.ports[at].1);
        let client = format!("http://127.0.0.1:{}", self.ports[at].0);
        let all: Vec<_> = (0..self.ports.len()).map(|at| format!("m{at}={}", peer(at))).collect();
        let log = self.dir.path().join(format!("log{at}"));
        let file = File::create(&log).expect("log file");
        command
            .args(["--name", &format!("m{at}"), "--data-dir"])
            .arg(self.dir.path().join(format!("data{at}")))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer(at), "--initial-advertise-peer-urls", &peer(at)])
            .args(["--initial-cluster", &all.join(",")])
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("log file"))
            .stderr(file);
        Member { child: command.spawn().expect("start the binary"), port: self.ports[at].0, log }
    }
}
