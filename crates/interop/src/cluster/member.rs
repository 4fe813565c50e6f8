//! One member as a process: on ports and a dir of its own that it keeps over restarts, perhaps in a network namespace.

use std::{
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU16, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::super::{http::Http, server::Program};

const POLL: Duration = Duration::from_millis(50);
const STOP_MAX: Duration = Duration::from_secs(20);
/// For requests that steer: longer than an election.
const ASK_MAX: Duration = Duration::from_secs(7);

/// Where a member runs.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// `None`: on loopback.
    pub ip: Option<String>,
    /// The namespace that the process runs in.
    pub netns: Option<String>,
}

pub struct Member {
    pub name: String,
    pub program: Program,
    pub dir: PathBuf,
    pub log: PathBuf,
    pub host: Host,
    /// Who asks it, with their password, once there are users.
    pub user: Option<(&'static str, &'static str)>,
    client_port: u16,
    peer_port: u16,
    child: Option<Child>,
}

impl Member {
    pub fn new(name: &str, program: &Program, base: &Path, host: Host) -> Result<Member> {
        let (dir, log) = (base.join(name), base.join(format!("{name}.log")));
        let (client_port, peer_port) = (free_port()?, free_port()?);
        Ok(Member {
            name: name.to_owned(),
            program: program.clone(),
            dir,
            log,
            host,
            user: None,
            client_port,
            peer_port,
            child: None,
        })
    }

    /// The same member, on the same ports and dir, that does not run.
    pub fn twin(&self) -> Member {
        let Member { name, program, dir, log, host, user, client_port, peer_port, child: _ } = self;
        let (name, program, dir, log, host) = (name.clone(), program.clone(), dir.clone(), log.clone(), host.clone());
        let (user, client_port, peer_port) = (*user, *client_port, *peer_port);
        Member { name, program, dir, log, host, user, client_port, peer_port, child: None }
    }

    fn ip(&self) -> &str {
        self.host.ip.as_deref().unwrap_or("127.0.0.1")
    }

    /// `host:port` for clients.
    pub fn endpoint(&self) -> String {
        format!("{}:{}", self.ip(), self.client_port)
    }

    pub fn client_url(&self) -> String {
        format!("http://{}", self.endpoint())
    }

    /// `host:port` for other members.
    pub fn peer_endpoint(&self) -> String {
        format!("{}:{}", self.ip(), self.peer_port)
    }

    pub fn peer_url(&self) -> String {
        format!("http://{}", self.peer_endpoint())
    }

    /// This member's part of `--initial-cluster`.
    pub fn entry(&self) -> String {
        format!("{}={}", self.name, self.peer_url())
    }

    pub fn start(&mut self, initial: &str, state: &str, flags: &[&str]) -> Result<()> {
        let out = File::options().create(true).append(true).open(&self.log)?;
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
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stderr(out.try_clone()?)
            .stdout(out);
        let child = command.spawn().with_context(|| format!("failed to start {}", self.program.path.display()))?;
        self.child = Some(child);
        Ok(())
    }

    pub fn running(&self) -> bool {
        self.child.is_some()
    }

    /// SIGKILL, as a crash of the process.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// SIGTERM; it must end by itself.
    pub fn stop(&mut self) -> Result<Duration> {
        let start = Instant::now();
        self.signal("TERM")?;
        self.wait_end(STOP_MAX)?;
        Ok(start.elapsed())
    }

    pub fn signal(&self, signal: &str) -> Result<()> {
        let child = self.child.as_ref().with_context(|| format!("{} does not run", self.name))?;
        let sent = Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()).status()?;
        if sent.success() { Ok(()) } else { bail!("failed to send SIG{signal} to {}", self.name) }
    }

    /// Until the process has ended by itself.
    pub fn wait_end(&mut self, limit: Duration) -> Result<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = self.try_end()? {
                return Ok(status);
            }
            thread::sleep(POLL);
        }
        bail!("{} did not end within {limit:?}; the end of its log:\n{}", self.name, self.log_tail())
    }

    /// Whether the process is there; how it ended is still to be asked.
    pub fn alive(&mut self) -> Result<bool> {
        Ok(self.child.as_mut().map(Child::try_wait).transpose()?.is_some_and(|ended| ended.is_none()))
    }

    /// How the process ended, if it has.
    pub fn try_end(&mut self) -> Result<Option<ExitStatus>> {
        let Some(child) = &mut self.child else { return Ok(None) };
        let status = child.try_wait()?;
        if status.is_some() {
            self.child = None;
        }
        Ok(status)
    }

    pub fn ask(&self, path: &str, body: &Value) -> Result<Value> {
        let mut http = Http::connect_within(&self.endpoint(), ASK_MAX)?;
        let token = match self.user {
            Some((name, password)) => http.log_in(name, password)?.with_context(|| format!("{name} cannot log in"))?,
            None => String::new(),
        };
        http.call_as(&token, path, body).with_context(|| format!("asking {}", self.name))
    }

    pub fn get(&self, path: &str) -> Result<String> {
        Ok(Http::connect_within(&self.endpoint(), ASK_MAX)?.get(path)?.body)
    }

    pub fn log_text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    pub fn log_tail(&self) -> String {
        let log = self.log_text();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }

    /// Waits until the log has this; without it the test would race the process.
    pub fn wait_log(&self, text: &str, limit: Duration) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < limit {
            if self.log_text().contains(text) {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        bail!("{} did not log {text:?} within {limit:?}; the end of its log:\n{}", self.name, self.log_tail())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A free port below those that the system hands out for outgoing connections: it must still be free after a restart.
pub fn free_port() -> Result<u16> {
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap_or_default();
    for _ in 0..COUNT {
        let port = FIRST + start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("found no free port from {FIRST} on")
}
