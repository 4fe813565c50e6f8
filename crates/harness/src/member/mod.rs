//! Members as processes: Lockgate or a real etcd, which take the same flags and log the same line when they are ready.

mod group;
mod place;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

pub use self::{group::Group, place::Place};
use crate::{
    Output, Port, Reply,
    process::{Ended, Process},
    request,
};

/// Logged by both servers at level info.
const READY: &str = "ready to serve client requests";

/// A running member. Dropping it kills it.
#[derive(Debug)]
pub struct Member {
    process: Process,
    program: PathBuf,
    /// `host:port` for clients.
    address: String,
}

impl Member {
    /// Starts `command` as it is; `address` is where it will serve clients.
    #[track_caller]
    fn spawn(command: Command, log: &Path, address: String) -> Member {
        let program = PathBuf::from(command.get_program());
        Member { process: Process::start(command, log), program, address }
    }

    /// `127.0.0.1:port` for clients.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn port(&self) -> u16 {
        self.address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or_default()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Waits until the member serves, or returns how it ended before.
    #[track_caller]
    pub fn wait_ready(&mut self) -> Result<(), Ended> {
        let address = self.address.clone();
        let what = format!("{} serves on {address}", self.program.display());
        self.process.wait_until(&what, |process| process.log().contains(READY) || is_healthy(&address))
    }

    /// Waits until the member serves; panics if it ends before.
    #[track_caller]
    pub fn ready(mut self) -> Member {
        if let Err(ended) = self.wait_ready() {
            panic!("{} ended with {} at start:\n{}", self.program.display(), ended.status, ended.log);
        }
        self
    }

    /// Waits until the log contains `text`.
    #[track_caller]
    pub fn wait_log(&mut self, text: &str) {
        self.process.wait_log(text);
    }

    /// Waits until the member has written its ports file, and returns the file's contents.
    #[track_caller]
    pub fn wait_ports(&mut self, file: &Path) -> serde_json::Value {
        self.process.wait_ports(file)
    }

    /// Sends a request to the member's client port and returns the reply.
    #[track_caller]
    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let reply = request(&self.address, method, path, headers, body);
        reply.unwrap_or_else(|error| panic!("{method} {path} on {}: {error}", self.address))
    }

    pub fn has_ended(&mut self) -> bool {
        self.process.has_ended()
    }

    /// Waits until the member ends by itself.
    #[track_caller]
    pub fn wait_end(&mut self) -> Ended {
        self.process.wait_end()
    }

    /// Asks the member to stop with SIGTERM and waits until it has ended.
    #[track_caller]
    pub fn stop(mut self) -> Ended {
        self.process.stop()
    }

    /// Ends the member with SIGKILL.
    pub fn kill(mut self) {
        self.process.kill();
    }

    /// Runs the etcdctl that was built with this member's program.
    #[track_caller]
    pub fn etcdctl(&self, args: &[&str]) -> Output {
        self.tool(&self.program.with_file_name("etcdctl"), args)
    }

    /// Runs a tool such as etcdctl on this member.
    #[track_caller]
    pub fn tool(&self, program: &Path, args: &[&str]) -> Output {
        Output::of(Command::new(program).args(["--endpoints", &self.address]).args(args))
    }
}

/// For members that log no line of level info.
fn is_healthy(address: &str) -> bool {
    request(address, "GET", "/health", &[], "").is_ok_and(|reply| reply.body.contains("\"true\""))
}

/// The flags of a member: where it listens, what it advertises, and its cluster.
fn network_flags(name: &str, client: &Port, peer: &Port, advertised_peer: &str, cluster: &str) -> Vec<String> {
    let client = client.url();
    let flags = [
        ("--name", name),
        ("--listen-client-urls", &client),
        ("--advertise-client-urls", &client),
        ("--listen-peer-urls", &peer.url()),
        ("--initial-advertise-peer-urls", advertised_peer),
        ("--initial-cluster", cluster),
    ];
    flags.iter().flat_map(|(flag, value)| [(*flag).to_owned(), (*value).to_owned()]).collect()
}
