//! One API server as a process on a store that runs elsewhere.

use std::{
    fs::{self, File},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::super::{
    cluster::{World, member},
    server::{Program, Server},
};

const READY_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

pub struct Api {
    child: Child,
    pub kubeconfig: PathBuf,
    log: PathBuf,
}

impl Api {
    /// Starts on `dir` and waits until it serves.
    pub fn start(world: &World, dir: &Path, stores: &[String], flags: &[&str]) -> Result<Api> {
        fs::create_dir_all(dir)?;
        let address = format!("127.0.0.1:{}", member::free_port()?);
        let log = dir.with_extension("log");
        let out = File::options().create(true).append(true).open(&log)?;
        let child = Command::new(&world.ours.path)
            .args(["apiserver", "--etcd-servers", &stores.join(","), "--listen", &address, "--data-dir"])
            .arg(dir)
            .args(flags)
            .env_clear()
            .stdin(Stdio::null())
            .stderr(out.try_clone()?)
            .stdout(out)
            .spawn()
            .with_context(|| format!("failed to start {}", world.ours.path.display()))?;
        let mut api = Api { child, kubeconfig: dir.join("admin.kubeconfig"), log };
        api.wait(&address)?;
        Ok(api)
    }

    fn wait(&mut self, address: &str) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < READY_MAX {
            if let Some(status) = self.child.try_wait()? {
                bail!("the API server ended with {status}:\n{}", self.log_text());
            }
            if self.kubeconfig.is_file() && TcpStream::connect(address).is_ok() {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        bail!("the API server does not serve after {READY_MAX:?}:\n{}", self.log_text())
    }

    /// The key of its authority.
    pub fn key(&self) -> PathBuf {
        self.kubeconfig.with_file_name("pki").join("ca.key")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log_text(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// It must still run, and must not have panicked anywhere.
    pub fn check_well(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the API server ended by itself with {status}:\n{}", self.log_text());
        }
        let log = self.log_text();
        if let Some(line) = log.lines().find(|line| line.contains("panicked")) {
            bail!("the API server panicked: {line}");
        }
        Ok(())
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A store of one member and an API server on it.
pub struct Pair {
    pub api: Api,
    pub store: Server,
}

impl Pair {
    pub fn start(world: &World, base: &Path, store: &Program) -> Result<Pair> {
        let store = Server::start(store, &base.join("store"))?;
        let api = Api::start(world, &base.join("api"), std::slice::from_ref(&store.endpoint), &[])?;
        Ok(Pair { api, store })
    }
}
