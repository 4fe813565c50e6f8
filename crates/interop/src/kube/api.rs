//! One API server as a process on a store that runs elsewhere.

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, bail};
use harness::Process;

use super::{
    super::{
        cluster::World,
        server::{Program, Server, endpoint},
        wait::until_some,
    },
    sets::ANY,
};

/// Dropping it kills it.
pub(super) struct Api {
    process: Process,
    pub kubeconfig: PathBuf,
}

impl Api {
    /// Starts on `dir` and waits until it serves.
    pub(super) fn start(world: &World, dir: &Path, stores: &[String], flags: &[&str]) -> Result<Api> {
        fs::create_dir_all(dir)?;
        let ports_file = dir.with_extension("ports");
        let mut command = Command::new(&world.ours.path);
        command
            .args(["apiserver", "--etcd-servers", &stores.join(","), "--listen", ANY, "--data-dir"])
            .arg(dir)
            .arg("--ports-file")
            .arg(&ports_file)
            .args(flags)
            .env_clear();
        let process = Process::start_appending(command, &dir.with_extension("log"));
        let mut api = Api { process, kubeconfig: dir.join("admin.kubeconfig") };
        let address = endpoint(&mut api.process, &ports_file, "api")?;
        until_some("the API server serves", || {
            api.check_well()?;
            Ok((api.kubeconfig.is_file() && TcpStream::connect(&address).is_ok()).then_some(()))
        })?;
        Ok(api)
    }

    /// The key of its authority.
    pub(super) fn key(&self) -> PathBuf {
        self.kubeconfig.with_file_name("pki").join("ca.key")
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn log_text(&self) -> String {
        self.process.log()
    }

    /// It must still run, and must not have panicked anywhere.
    pub(super) fn check_well(&mut self) -> Result<()> {
        if let Some(status) = self.process.status() {
            bail!("the API server ended by itself with {status}:\n{}", self.log_text());
        }
        let log = self.log_text();
        if let Some(line) = log.lines().find(|line| line.contains("panicked")) {
            bail!("the API server panicked: {line}");
        }
        Ok(())
    }
}

/// A store of one member and an API server on it.
pub(super) struct Pair {
    pub api: Api,
    pub store: Server,
}

impl Pair {
    pub(super) fn start(world: &World, base: &Path, store: &Program) -> Result<Pair> {
        let store = Server::start(store, &base.join("store"))?;
        let api = Api::start(world, &base.join("api"), std::slice::from_ref(&store.endpoint), &[])?;
        Ok(Pair { api, store })
    }
}
