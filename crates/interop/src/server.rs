//! One server under test, real etcd or Lockgate: started, stopped or killed, with its log next to its data dir.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
};

use anyhow::{Context, Result, bail};
use harness::{Port, Process, Signal};

use super::{http::Http, wait::until_some};

/// A port that the system chooses.
const ANY: &str = "http://127.0.0.1:0";

/// A program that serves etcd's API.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub path: PathBuf,
    /// Flags for every start, such as the cluster version of a new Lockgate.
    pub flags: Vec<String>,
}

impl Program {
    pub(crate) fn new(path: impl Into<PathBuf>) -> Program {
        Program { path: path.into(), flags: Vec::new() }
    }

    /// A Lockgate that founds clusters at 3.7, so that real 3.7 can take over. A real etcd may stand in for it, to try
    /// these checks themselves.
    pub(crate) fn lockgate(path: impl Into<PathBuf>) -> Program {
        let mut program = Program::new(path);
        if program.is_lockgate() {
            program.flags.push("--initial-cluster-version=3.7".to_owned());
        }
        program
    }

    pub(crate) fn is_lockgate(&self) -> bool {
        is_lockgate(&self.path)
    }
}

/// Whether a path is that of a Lockgate, by its name.
pub(crate) fn is_lockgate(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("lockgate"))
}

/// The only member of its cluster. Dropping it kills it.
pub(crate) struct Server {
    /// Killed before its ports are released.
    process: Process,
    /// `host:port` for clients.
    pub endpoint: String,
    /// Client and peer port of a real etcd, which cannot say which ones the system chose.
    _ports: Option<[Port; 2]>,
}

impl Server {
    /// Starts on `dir` and waits until it is healthy.
    pub(crate) fn start(program: &Program, dir: &Path) -> Result<Server> {
        let mut server = Server::spawn(program, dir);
        if program.is_lockgate() {
            server.endpoint = endpoint(&mut server.process, &ports_file(dir), "client")?;
        }
        until_some(&format!("{} is healthy", program.path.display()), || {
            server.check_alive()?;
            let health = Http::connect(&server.endpoint).and_then(|mut http| http.get("/health?exclude=NOSPACE"));
            Ok(health.is_ok_and(|answer| answer.status == 200).then_some(()))
        })?;
        Ok(server)
    }

    /// Starts on a dir that must be refused, and returns the exit status and the log.
    pub(crate) fn start_refused(program: &Program, dir: &Path) -> Result<(ExitStatus, String)> {
        // The log of servers that ran on the dir before.
        let _ = fs::remove_file(dir.with_extension("log"));
        let mut server = Server::spawn(program, dir);
        let status = server.wait_end().context("it should have refused the dir")?;
        Ok((status, server.process.log()))
    }

    fn spawn(program: &Program, dir: &Path) -> Server {
        let ports = (!program.is_lockgate()).then(|| [Port::reserve(), Port::reserve()]);
        let [client, peer] =
            ports.as_ref().map_or([ANY.to_owned(), ANY.to_owned()], |ports| ports.each_ref().map(Port::url));
        let mut command = Command::new(&program.path);
        command
            .args(["--name", "default", "--logger", "zap", "--log-level", "warn", "--data-dir"])
            .arg(dir)
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .args(&program.flags)
            .env_clear();
        if program.is_lockgate() {
            command.arg("--ports-file").arg(ports_file(dir));
        }
        let process = Process::start_appending(command, &dir.with_extension("log"));
        let endpoint = client.trim_start_matches("http://").to_owned();
        Server { process, endpoint, _ports: ports }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn http(&self) -> Result<Http> {
        Http::connect(&self.endpoint)
    }

    /// SIGTERM; the server must end by itself. Its exit status is not checked, as etcd ends by the signal.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.process.signal(Signal::TERM);
        self.wait_end().map(drop)
    }

    /// SIGKILL, as a crash of the process.
    pub(crate) fn kill(mut self) {
        self.process.kill();
    }

    pub(crate) fn end(self, how: End) -> Result<()> {
        match how {
            End::Stop => self.stop(),
            End::Kill => {
                self.kill();
                Ok(())
            }
        }
    }

    /// Fails with the end of the log if the server has ended by itself.
    pub(crate) fn check_alive(&mut self) -> Result<()> {
        if let Some(status) = self.process.status() {
            bail!(
                "the server ended by itself with {status}; the end of its log:\n{}",
                harness::tail(&self.process.log())
            );
        }
        Ok(())
    }

    fn wait_end(&mut self) -> Result<ExitStatus> {
        until_some("the server ends", || Ok(self.process.status()))
    }
}

fn ports_file(dir: &Path) -> PathBuf {
    dir.with_extension("ports")
}

/// `host:port` of the first listener of a kind, from the ports file of a Lockgate that starts.
pub(crate) fn endpoint(process: &mut Process, ports_file: &Path, kind: &str) -> Result<String> {
    let ports = process.wait_ports(ports_file);
    let url = ports[kind][0].as_str().with_context(|| format!("no listener {kind:?} in {ports}"))?;
    Ok(url.rsplit_once("//").map_or(url, |(_, address)| address).to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Stop,
    Kill,
}
