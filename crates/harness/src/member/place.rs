//! The directory and the ports of one member, which stay the same over restarts.

use std::{
    cell::Cell,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::{Member, network_flags};
use crate::{Ended, Port, tempdir};

/// What clusters of one advertise to members that do not exist: with the same URL, all of them have the same ids.
const ALONE: &str = "http://127.0.0.1:2380";

/// A member's program, data dir and ports. By default it is the only member of its cluster.
#[derive(Debug)]
pub struct Place {
    program: PathBuf,
    data: PathBuf,
    name: String,
    /// What the member advertises to other members.
    advertised_peer: String,
    /// The value of `--initial-cluster`.
    cluster: String,
    client: Port,
    peer: Port,
    /// Holds the log files, and the data dir if the test names no other.
    dir: TempDir,
    starts: Cell<u32>,
}

impl Place {
    /// A cluster of one, with no data yet.
    pub fn new(program: impl Into<PathBuf>) -> Place {
        let dir = tempdir();
        let data = dir.path().join("data");
        Place {
            program: program.into(),
            data,
            name: "m1".into(),
            advertised_peer: ALONE.into(),
            cluster: format!("m1={ALONE}"),
            client: Port::reserve(),
            peer: Port::reserve(),
            dir,
            starts: Cell::new(0),
        }
    }

    /// A cluster of one, with its data in `data`.
    pub fn at(program: impl Into<PathBuf>, data: &Path) -> Place {
        Place { data: data.to_owned(), ..Place::new(program) }
    }

    /// A member that can be reached by others. [`Place::join`] says which cluster it belongs to.
    pub fn of_cluster(program: impl Into<PathBuf>, name: &str) -> Place {
        let place = Place::new(program);
        let advertised_peer = place.peer.url();
        let cluster = format!("{name}={advertised_peer}");
        Place { name: name.into(), advertised_peer, cluster, ..place }
    }

    /// Sets the members of the cluster, as `name=url` pairs.
    pub fn join(&mut self, cluster: &str) {
        cluster.clone_into(&mut self.cluster);
    }

    /// Another program in the same place.
    pub fn set_program(&mut self, program: impl Into<PathBuf>) {
        self.program = program.into();
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// `name=url`, as in `--initial-cluster`.
    pub fn as_cluster_member(&self) -> String {
        format!("{}={}", self.name, self.advertised_peer)
    }

    /// The URL where other members reach this one.
    pub fn peer_url(&self) -> String {
        self.peer.url()
    }

    /// `127.0.0.1:port`, where clients reach the member.
    pub fn address(&self) -> String {
        self.client.address()
    }

    /// A directory that lives as long as this value.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn data(&self) -> PathBuf {
        self.data.clone()
    }

    pub fn wal(&self) -> PathBuf {
        self.data.join("member/wal")
    }

    pub fn db(&self) -> PathBuf {
        self.data.join("member/snap/db")
    }

    /// Starts the member and waits until it serves.
    #[track_caller]
    pub fn start(&self, flags: &[&str]) -> Member {
        self.spawn(flags).ready()
    }

    /// Starts the member and waits until it serves or has ended.
    #[track_caller]
    pub fn try_start(&self, flags: &[&str]) -> Result<Member, Ended> {
        let mut member = self.spawn(flags);
        member.wait_ready().map(|()| member)
    }

    /// Starts the member without waiting.
    #[track_caller]
    pub fn spawn(&self, flags: &[&str]) -> Member {
        let mut command = Command::new(&self.program);
        command.args(flags);
        self.spawn_command(command)
    }

    /// Starts the member by a command that ends in its program and first flags, without waiting.
    #[track_caller]
    pub fn spawn_command(&self, mut command: Command) -> Member {
        command.arg("--data-dir").arg(&self.data);
        command.args(network_flags(&self.name, &self.client, &self.peer, &self.advertised_peer, &self.cluster));
        self.starts.set(self.starts.get() + 1);
        let log = self.dir.path().join(format!("{}-{}.log", self.name, self.starts.get()));
        Member::spawn(command, &log, self.client.address())
    }

    /// The path and the bytes of every file and directory in the data dir.
    pub fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut contents = Vec::new();
        walk(&self.data, &mut contents);
        contents.sort();
        contents
    }
}

fn walk(dir: &Path, contents: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            contents.push((path.clone(), Vec::new()));
            walk(&path, contents);
        } else {
            let bytes = fs::read(&path).unwrap_or_else(|error| panic!("failed to read {}: {error}", path.display()));
            contents.push((path, bytes));
        }
    }
}
