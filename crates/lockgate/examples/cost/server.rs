//! The server whose cost is measured.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use harness::{Member, Place, asynchronous::until};
use proto::etcdserverpb::{FeatureGateStatusRequest, maintenance_client::MaintenanceClient};
use tonic::transport::Channel;

use crate::Outcome;

/// The beginning of the names of callgrind's files.
const DUMP: &str = "callgrind.out";

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Gates {
    Off,
    On,
}

pub(crate) struct Server {
    /// Killed before its place is removed.
    member: Member,
    place: Place,
    gates: Gates,
}

impl Server {
    pub(crate) fn start(binary: &str, gates: Gates, counting: bool) -> Server {
        let place = Place::new(binary);
        let mut command = if counting { under_callgrind(&place) } else { Command::new(binary) };
        if gates == Gates::On {
            command.arg("--cluster-feature-gates=AtomicIncrement=true,PersistedLeaseCheckpoints=true");
        }
        command.arg("--unsafe-no-fsync");
        Server { member: place.spawn_command(command), place, gates }
    }

    /// Waits until the features are on or off as they should be.
    pub(crate) async fn connect(&self) -> Outcome<Channel> {
        let channel = Channel::from_shared(self.member.url())?.connect_lazy();
        let maintenance = MaintenanceClient::new(channel.clone());
        until("the server is up with its features", async || {
            let status = maintenance.clone().feature_gate_status(FeatureGateStatusRequest::default()).await;
            let is_on = status.map(|status| status.get_ref().features.iter().any(|feature| feature.enabled));
            is_on.is_ok_and(|is_on| is_on == (self.gates == Gates::On))
        })
        .await;
        Ok(channel)
    }

    /// Nanoseconds that all threads have run.
    pub(crate) fn ran(&self) -> Outcome<u64> {
        let mut sum = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.member.pid()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            sum += text.split_whitespace().next().and_then(|ran| ran.parse::<u64>().ok()).ok_or("no schedstat")?;
        }
        Ok(sum)
    }

    pub(crate) fn count_from_zero(&self) -> Outcome<()> {
        self.control("--zero")
    }

    /// Instructions since the count began.
    pub(crate) fn counted(&self) -> Outcome<u64> {
        let before = self.dumps()?;
        self.control("--dump")?;
        let new = self.dumps()?.into_iter().find(|dump| !before.contains(dump)).ok_or("callgrind wrote no file")?;
        let text = fs::read_to_string(&new)?;
        if let Some(kept) = std::env::var_os("KEEP_DUMPS") {
            fs::copy(&new, Path::new(&kept).join(new.file_name().ok_or("no name")?))?;
        }
        let total = text.lines().find_map(|line| line.strip_prefix("totals:").or(line.strip_prefix("summary:")));
        Ok(total.ok_or("no total in callgrind's file")?.trim().parse()?)
    }

    fn dumps(&self) -> Outcome<Vec<PathBuf>> {
        let files = fs::read_dir(self.place.dir())?.map(|entry| entry.map(|entry| entry.path()));
        let is_dump = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DUMP));
        Ok(files.collect::<Result<Vec<_>, _>>()?.into_iter().filter(is_dump).collect())
    }

    fn control(&self, what: &str) -> Outcome<()> {
        let done = Command::new("callgrind_control").arg(what).arg(self.member.pid().to_string()).output()?;
        if !done.status.success() {
            return Err(format!("callgrind_control {what}: {}", String::from_utf8_lossy(&done.stderr)).into());
        }
        Ok(())
    }
}

fn under_callgrind(place: &Place) -> Command {
    let mut command = Command::new("valgrind");
    let out = place.dir().join(DUMP);
    // Threads must take turns, or one that polls starves the others.
    command
        .args(["--tool=callgrind", "--fair-sched=yes", &format!("--callgrind-out-file={}", out.display())])
        .arg(place.program());
    command
}
