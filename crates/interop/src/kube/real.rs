//! A real kube-apiserver on a store, and the stories of `interop/kubectl/shared.txt` in which it shares one with Lockgate.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use harness::{Port, Process};

use super::{
    super::{
        cluster::{Ending, Scenario, World},
        peer, root,
        server::Server,
        tool,
        wait::until_some,
    },
    api::Api,
    kubectl::{Shell, newest},
    script,
};

pub(super) const KUBERNETES: &str = "kube-apiserver-1.36.3";
/// The oldest that has admission policies as v1.
pub(super) const OLDEST: &str = "kube-apiserver-1.30.14";

pub(super) const SCENARIOS: &[Scenario] =
    &[Scenario { name: "kube-apiserver: one store with ours", short: false, run: shared }];

pub(super) struct Real {
    /// Killed before its port is released.
    process: Process,
    _port: Port,
    pub kubeconfig: PathBuf,
    pub took: Duration,
}

impl Real {
    /// Starts on `dir` and waits until it is ready. `key` is any private key with its certificate next to
    /// it, for the service accounts that nobody has here.
    pub(super) fn start(world: &World, dir: &Path, store: &str, key: &Path) -> Result<Real> {
        Real::start_release(KUBERNETES, world, dir, store, key)
    }

    pub(super) fn start_release(release: &str, world: &World, dir: &Path, store: &str, key: &Path) -> Result<Real> {
        fs::create_dir_all(dir)?;
        let (port, tokens) = (Port::reserve(), dir.join("tokens.csv"));
        fs::write(&tokens, ::requests::TOKENS)?;
        let program = peer::find(&world.cache, release, "kube-apiserver")?;
        let start = Instant::now();
        let mut command = Command::new(program);
        command
            .args([format!("--etcd-servers=http://{store}"), format!("--secure-port={}", port.number())])
            .args(["--bind-address=127.0.0.1", "--service-account-issuer=https://kubernetes.default.svc"])
            .args(["--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24"])
            .args([named("service-account-key-file", &key.with_extension("crt"))])
            .arg(named("service-account-signing-key-file", key))
            .args([named("token-auth-file", &tokens), named("cert-dir", &dir.join("certs"))]);
        let process = Process::start(command, &dir.with_extension("log"));
        let kubeconfig = dir.join("kubeconfig");
        fs::write(&kubeconfig, config(port.number()))?;
        let mut real = Real { process, _port: port, kubeconfig, took: Duration::ZERO };
        real.wait(&newest(world)?)?;
        real.took = start.elapsed();
        Ok(real)
    }

    fn wait(&mut self, kubectl: &Path) -> Result<()> {
        until_some("kube-apiserver is ready", || {
            if let Some(status) = self.process.status() {
                bail!("kube-apiserver ended with {status}: {}", self.process.log());
            }
            Ok(is_ready(kubectl, &self.kubeconfig)?.then_some(()))
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }
}

pub(super) fn is_ready(kubectl: &Path, kubeconfig: &Path) -> Result<bool> {
    let mut asked = Command::new(kubectl);
    asked.args(["get", "--raw=/readyz", "--kubeconfig"]).arg(kubeconfig);
    Ok(tool::output(asked)?.status.success())
}

fn named(flag: &str, path: &Path) -> String {
    format!("--{flag}={}", path.display())
}

/// Its certificate is made at start and known to nobody.
fn config(port: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
         clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}', insecure-skip-tls-verify: true}}}}]\n\
         users: [{{name: u, user: {{token: secret}}}}]\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n"
    )
}

fn shared(world: &World, base: &Path) -> Result<Ending> {
    let store = Server::start(&world.etcd, &base.join("store"))?;
    let stores = std::slice::from_ref(&store.endpoint);
    let ours = Api::start(world, &base.join("ours"), stores, &[])?;
    let off = Api::start(world, &base.join("off"), stores, &["--feature-gates=CRDFieldLevelVersioning=false"])?;
    let real = Real::start(world, &base.join("real"), &store.endpoint, &ours.key())?;
    let mut shell = Shell::new(base, &newest(world)?)?;
    for (name, config) in [("OURS", &ours.kubeconfig), ("OFF", &off.kubeconfig), ("REAL", &real.kubeconfig)] {
        shell.env.push((name, config.clone()));
    }
    let steps = script::parse(&fs::read_to_string(root()?.join("interop/kubectl/shared.txt"))?)?;
    shell.run(&steps)?;
    for mut api in [ours, off] {
        api.check_well()?;
    }
    Ok(Ending::Well(format!("{} steps with {KUBERNETES}", steps.len())))
}
