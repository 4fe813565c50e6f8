//! The server whose cost is measured.

use std::{
    fs,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use proto::etcdserverpb::{FeatureGateStatusRequest, maintenance_client::MaintenanceClient};
use tempfile::TempDir;
use tonic::transport::Channel;

use crate::Outcome;

/// Long enough for a server under valgrind.
const START_MAX: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, PartialEq)]
pub enum Gates {
    Off,
    On,
}

pub struct Server {
    child: Child,
    url: String,
    gates: Gates,
    dir: TempDir,
}

impl Server {
    pub fn start(binary: &str, gates: Gates, counting: bool) -> Outcome<Server> {
        let dir = tempfile::tempdir()?;
        let (url, peer) = (free_url()?, free_url()?);
        let mut command = if counting { under_callgrind(binary, &dir) } else { Command::new(binary) };
        if gates == Gates::On {
            command.arg("--cluster-feature-gates=AtomicIncrement=true,PersistedLeaseCheckpoints=true");
        }
        let child = command
            .args(["--name", "m1", "--unsafe-no-fsync", "--data-dir"])
            .arg(dir.path().join("data"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("m1={peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {command:?}: {error}"))?;
        Ok(Server { child, url, gates, dir })
    }

    /// Waits until the features are as they are to be.
    pub async fn connect(&self) -> Outcome<Channel> {
        let channel = Channel::from_shared(self.url.clone())?.connect_lazy();
        let mut maintenance = MaintenanceClient::new(channel.clone());
        for _ in 0..START_MAX.as_millis() / LOOK_EVERY.as_millis() {
            let status = maintenance.feature_gate_status(FeatureGateStatusRequest::default()).await;
            let on = status.map(|status| status.get_ref().features.iter().any(|feature| feature.enabled));
            if on.is_ok_and(|on| on == (self.gates == Gates::On)) {
                return Ok(channel);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err("the server did not come up with its features".into())
    }

    /// Nanoseconds that all threads have run.
    pub fn ran(&self) -> Outcome<u64> {
        let mut sum = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            sum += text.split_whitespace().next().and_then(|ran| ran.parse::<u64>().ok()).ok_or("no schedstat")?;
        }
        Ok(sum)
    }

    pub fn count_from_zero(&self) -> Outcome<()> {
        self.control("--zero")
    }

    /// Instructions since the count began.
    pub fn counted(&self) -> Outcome<u64> {
        let before = self.dumps()?;
        self.control("--dump")?;
        let new = self.dumps()?.into_iter().find(|dump| !before.contains(dump)).ok_or("callgrind wrote no file")?;
        let text = fs::read_to_string(&new)?;
        if let Some(kept) = std::env::var_os("KEEP_DUMPS") {
            fs::copy(&new, std::path::Path::new(&kept).join(new.file_name().ok_or("no name")?))?;
        }
        let total = text.lines().find_map(|line| line.strip_prefix("totals:").or(line.strip_prefix("summary:")));
        Ok(total.ok_or("no total in callgrind's file")?.trim().parse()?)
    }

    fn dumps(&self) -> Outcome<Vec<std::path::PathBuf>> {
        let files = fs::read_dir(self.dir.path())?.map(|entry| entry.map(|entry| entry.path()));
        Ok(files.collect::<Result<Vec<_>, _>>()?.into_iter().filter(|path| path.is_file()).collect())
    }

    fn control(&self, what: &str) -> Outcome<()> {
        let done = Command::new("callgrind_control").arg(what).arg(self.child.id().to_string()).output()?;
        if !done.status.success() {
            return Err(format!("callgrind_control {what}: {}", String::from_utf8_lossy(&done.stderr)).into());
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_url() -> Outcome<String> {
    Ok(format!("http://127.0.0.1:{}", TcpListener::bind("127.0.0.1:0")?.local_addr()?.port()))
}

fn under_callgrind(binary: &str, dir: &TempDir) -> Command {
    let mut command = Command::new("valgrind");
    let out = dir.path().join("callgrind.out");
    // Threads must take turns, or one that polls starves the others.
    command
        .args(["--tool=callgrind", "--fair-sched=yes", &format!("--callgrind-out-file={}", out.display())])
        .arg(binary);
    command
}
