//! One server under test, real etcd or lockgate: started on free ports, stopped or killed, its log kept for complaints.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::{cluster::member::free_port, http::Http};

const START_MAX: Duration = Duration::from_secs(60);
const REFUSE_MAX: Duration = Duration::from_secs(10);
const STOP_MAX: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// A program that serves etcd's API.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    /// Flags for every start, such as the cluster version of a new lockgate.
    pub flags: Vec<String>,
}

impl Program {
    pub fn new(path: impl Into<PathBuf>) -> Program {
        Program { path: path.into(), flags: Vec::new() }
    }

    /// Our server, founding clusters at 3.7 so that real 3.7 can take over. A real etcd may stand in for it, to try
    /// these checks themselves.
    pub fn lockgate(path: impl Into<PathBuf>) -> Program {
        let path = path.into();
        let ours = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("lockgate"));
        let flags = if ours { vec!["--initial-cluster-version=3.7".to_owned()] } else { Vec::new() };
        Program { path, flags }
    }
}

pub struct Server {
    child: Child,
    /// `host:port` for clients.
    pub endpoint: String,
    log: PathBuf,
}

impl Server {
    /// Starts on `dir` and waits until it is healthy.
    pub fn start(program: &Program, dir: &Path) -> Result<Server> {
        let mut server = Server::spawn(program, dir)?;
        let start = Instant::now();
        while start.elapsed() < START_MAX {
            if let Some(status) = server.child.try_wait()? {
                bail!(
                    "{} ended at start with {status}; the end of its log:\n{}",
                    program.path.display(),
                    server.log_tail()
                );
            }
            let health = Http::connect(&server.endpoint).and_then(|mut http| http.get("/health?exclude=NOSPACE"));
            if health.is_ok_and(|answer| answer.status == 200) {
                return Ok(server);
            }
            thread::sleep(POLL);
        }
        bail!(
            "{} is not healthy after {START_MAX:?}; the end of its log:\n{}",
            program.path.display(),
            server.log_tail()
        )
    }

    /// Starts on a dir that must be refused: its exit status and all it said.
    pub fn start_refused(program: &Program, dir: &Path) -> Result<(ExitStatus, String)> {
        // Without what servers said that ran on the dir before.
        let _ = fs::remove_file(dir.with_extension("log"));
        let mut server = Server::spawn(program, dir)?;
        let status = server.wait(REFUSE_MAX).context("it should have refused the dir, but runs on")?;
        Ok((status, fs::read_to_string(&server.log)?))
    }

    fn spawn(program: &Program, dir: &Path) -> Result<Server> {
        let (client, peer) = (free_port()?, free_port()?);
        let (client_url, peer_url) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let log = dir.with_extension("log");
        let out = File::options().create(true).append(true).open(&log)?;
        let child = Command::new(&program.path)
            .args(["--name", "default", "--logger", "zap", "--log-level", "warn", "--data-dir"])
            .arg(dir)
            .args(["--listen-client-urls", &client_url, "--advertise-client-urls", &client_url])
            .args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url])
            .args(["--initial-cluster", &format!("default={peer_url}")])
            .args(&program.flags)
            .env_clear()
            .stdin(Stdio::null())
            .stderr(out.try_clone()?)
            .stdout(out)
            .spawn()
            .with_context(|| format!("failed to start {}", program.path.display()))?;
        Ok(Server { child, endpoint: format!("127.0.0.1:{client}"), log })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn http(&self) -> Result<Http> {
        Http::connect(&self.endpoint)
    }

    /// SIGTERM; the server must end by itself. Which status it ends with is its own (etcd dies of the signal).
    pub fn stop(mut self) -> Result<()> {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().context("failed to run `kill`")?;
        self.wait(STOP_MAX).map(drop)
    }

    /// SIGKILL, as a crash of the process.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub fn end(self, how: End) -> Result<()> {
        match how {
            End::Stop => self.stop(),
            End::Kill => self.kill(),
        }
    }

    /// It must still run: its log's end if not.
    pub fn check_alive(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the server ended by itself with {status}; the end of its log:\n{}", self.log_tail());
        }
        Ok(())
    }

    fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(POLL);
        }
        bail!("the server did not end within {limit:?}; the end of its log:\n{}", self.log_tail())
    }

    fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone after `stop` and `kill`; a failed check must leave no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Stop,
    Kill,
}
