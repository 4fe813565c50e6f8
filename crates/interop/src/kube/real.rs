//! A real kube-apiserver on a store, and the stories of `interop/kubectl/shared.txt` in which it shares one with ours.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::{
    super::{
        cluster::{Ending, Scenario, World, member},
        peer, root,
        server::Server,
    },
    api::Api,
    kubectl::{Shell, newest},
    script,
};

pub const KUBERNETES: &str = "kube-apiserver-1.36.3";
/// The oldest that has admission policies as v1.
pub const OLDEST: &str = "kube-apiserver-1.30.14";

pub const SCENARIOS: &[Scenario] =
    &[Scenario { name: "kube-apiserver: one store with ours", short: false, run: shared }];

const READY_MAX: Duration = Duration::from_secs(60);

pub struct Real {
    child: Child,
    pub kubeconfig: PathBuf,
    pub took: Duration,
}

impl Real {
    /// Starts on `dir` and waits until it is ready. `key` is any private key with its certificate beside
    /// it, for the service accounts that nobody has here.
    pub fn start(world: &World, dir: &Path, store: &str, key: &Path) -> Result<Real> {
        Real::start_release(KUBERNETES, world, dir, store, key)
    }

    pub fn start_release(release: &str, world: &World, dir: &Path, store: &str, key: &Path) -> Result<Real> {
        fs::create_dir_all(dir)?;
        let (port, tokens) = (member::free_port()?, dir.join("tokens.csv"));
        fs::write(&tokens, ::requests::TOKENS)?;
        let program = peer::find(&world.cache, release, "kube-apiserver")?;
        let out = File::create(dir.join("log"))?;
        let start = Instant::now();
        let child = Command::new(&program)
            .args([format!("--etcd-servers=http://{store}"), format!("--secure-port={port}")])
            .args(["--bind-address=127.0.0.1", "--service-account-issuer=https://kubernetes.default.svc"])
            .args(["--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24"])
            .args([named("service-account-key-file", &key.with_extension("crt"))])
            .arg(named("service-account-signing-key-file", key))
            .args([named("token-auth-file", &tokens), named("cert-dir", &dir.join("certs"))])
            .stdin(Stdio::null())
            .stderr(out.try_clone()?)
            .stdout(out)
            .spawn()
            .with_context(|| format!("failed to start {}", program.display()))?;
        let kubeconfig = dir.join("kubeconfig");
        fs::write(&kubeconfig, config(port))?;
        let mut real = Real { child, kubeconfig, took: Duration::ZERO };
        real.wait(&newest(world)?, &dir.join("log"))?;
        real.took = start.elapsed();
        Ok(real)
    }

    fn wait(&mut self, kubectl: &Path, log: &Path) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < READY_MAX {
            if let Some(status) = self.child.try_wait()? {
                bail!("kube-apiserver ended with {status}: {}", fs::read_to_string(log)?);
            }
            if is_ready(kubectl, &self.kubeconfig)? {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("kube-apiserver is not ready after {READY_MAX:?}; its log is in {}", log.display())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn is_ready(kubectl: &Path, kubeconfig: &Path) -> Result<bool> {
    let mut asked = Command::new(kubectl);
    asked.args(["get", "--raw=/readyz", "--kubeconfig"]).arg(kubeconfig).stdin(Stdio::null());
    Ok(asked.output()?.status.success())
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
