//! One member as a process: on ports and a dir of its own that it keeps over restarts, in a network namespace if wanted.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use harness::{Port, Process, Signal, wait_max};
use serde_json::Value;

use super::super::{
    http::Http,
    server::Program,
    wait::{until_ok, until_some},
};

/// The time after which a request that may be lost is repeated: longer than an election.
const ANSWER_MAX: Duration = Duration::from_secs(7);

/// Where a member runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Host {
    /// `None`: on loopback.
    pub ip: Option<String>,
    /// The namespace that the process runs in.
    pub netns: Option<String>,
}

pub(crate) struct Member {
    /// Killed before its ports are released.
    process: Option<Process>,
    pub name: String,
    pub program: Program,
    pub dir: PathBuf,
    pub log: PathBuf,
    pub host: Host,
    /// Name and password for requests, once there are users.
    pub user: Option<(&'static str, &'static str)>,
    client: Arc<Port>,
    peer: Arc<Port>,
}

impl Member {
    pub(crate) fn new(name: &str, program: &Program, base: &Path, host: Host) -> Member {
        Member {
            process: None,
            name: name.to_owned(),
            program: program.clone(),
            dir: base.join(name),
            log: base.join(format!("{name}.log")),
            host,
            user: None,
            client: Arc::new(Port::reserve()),
            peer: Arc::new(Port::reserve()),
        }
    }

    /// A member on the same ports and dir that does not run.
    pub(crate) fn twin(&self) -> Member {
        Member {
            process: None,
            name: self.name.clone(),
            program: self.program.clone(),
            dir: self.dir.clone(),
            log: self.log.clone(),
            host: self.host.clone(),
            user: self.user,
            client: self.client.clone(),
            peer: self.peer.clone(),
        }
    }

    fn ip(&self) -> &str {
        self.host.ip.as_deref().unwrap_or("127.0.0.1")
    }

    /// `host:port` for clients.
    pub(crate) fn endpoint(&self) -> String {
        format!("{}:{}", self.ip(), self.client.number())
    }

    pub(crate) fn client_url(&self) -> String {
        format!("http://{}", self.endpoint())
    }

    /// `host:port` for other members.
    pub(crate) fn peer_endpoint(&self) -> String {
        format!("{}:{}", self.ip(), self.peer.number())
    }

    pub(crate) fn peer_url(&self) -> String {
        format!("http://{}", self.peer_endpoint())
    }

    /// This member's part of `--initial-cluster`.
    pub(crate) fn entry(&self) -> String {
        format!("{}={}", self.name, self.peer_url())
    }

    pub(crate) fn start(&mut self, initial: &str, state: &str, flags: &[&str]) {
        let mut command = match &self.host.netns {
            None => Command::new(&self.program.path),
            Some(netns) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", netns]).arg(&self.program.path);
                command
            }
        };
        let (client, peer) = (self.client_url(), self.peer_url());
        command
            .args(["--name", &self.name, "--data-dir"])
            .arg(&self.dir)
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", initial, "--initial-cluster-state", state])
            .args(&self.program.flags)
            .args(flags)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        self.process = Some(Process::start_appending(command, &self.log));
    }

    pub(crate) fn running(&self) -> bool {
        self.process.is_some()
    }

    /// SIGKILL, as a crash of the process.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// SIGTERM; it must end by itself. Returns how long that took.
    pub(crate) fn stop(&mut self) -> Result<Duration> {
        let start = Instant::now();
        self.signal(Signal::TERM)?;
        self.wait_end()?;
        Ok(start.elapsed())
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let process = self.process.as_ref().with_context(|| format!("{} does not run", self.name))?;
        process.signal(signal);
        Ok(())
    }

    /// Waits until the process has ended by itself.
    pub(crate) fn wait_end(&mut self) -> Result<ExitStatus> {
        until_some(&format!("{} ends", self.name), || Ok(self.try_end()))
    }

    /// Whether the process runs. An exit status remains for [`Member::try_end`].
    pub(crate) fn alive(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| !process.has_ended())
    }

    /// How the process ended, if it has.
    pub(crate) fn try_end(&mut self) -> Option<ExitStatus> {
        let status = self.process.as_mut()?.status();
        if status.is_some() {
            self.process = None;
        }
        status
    }

    pub(crate) fn ask(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask_within(wait_max(), path, body)
    }

    /// Asks for something that is asked for again if there is no answer: real etcd never answers a change of members whose
    /// proposal was lost with its leader.
    pub(crate) fn ask_again_later(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask_within(ANSWER_MAX, path, body)
    }

    fn ask_within(&self, limit: Duration, path: &str, body: &Value) -> Result<Value> {
        let http = Http::connect_within(&self.endpoint(), limit);
        let mut http = http.with_context(|| format!("asking {}", self.name))?;
        let token = match self.user {
            Some((name, password)) => http.log_in(name, password)?.with_context(|| format!("{name} cannot log in"))?,
            None => String::new(),
        };
        http.call_as(&token, path, body).with_context(|| format!("asking {}", self.name))
    }

    /// Asks until the request succeeds: an election or a loaded machine may delay the answer beyond the server's own limit.
    pub(crate) fn ask_until_ok(&self, path: &str, body: &Value) -> Result<Value> {
        until_ok(&format!("{} answers {path}", self.name), || self.ask_again_later(path, body))
    }

    pub(crate) fn get(&self, path: &str) -> Result<String> {
        Ok(Http::connect(&self.endpoint())?.get(path)?.body)
    }

    pub(crate) fn log_text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    pub(crate) fn log_tail(&self) -> String {
        harness::tail(&self.log_text())
    }

    /// Waits until the log contains one of `texts` after its first `from` bytes.
    pub(crate) fn wait_log(&self, from: usize, texts: &[&str]) -> Result<()> {
        until_some(&format!("{} logs one of {texts:?}", self.name), || {
            let log = self.log_text();
            let log = log.get(from..).unwrap_or_default();
            Ok(texts.iter().any(|text| log.contains(text)).then_some(()))
        })
    }
}
