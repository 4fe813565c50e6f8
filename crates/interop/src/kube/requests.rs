//! The steps of `interop/requests`, sent to a real kube-apiserver and to Lockgate, each on a store of its own: what they answer must be
//! what is kept, but for the rows of `known-differences.txt` there. `UPDATE_GOLDENFILES=1` keeps what they answer now.

use std::{env, fs, net::SocketAddr, path::Path};

use ::requests::{self as scripts, Known, Report, Target};
use anyhow::{Context, Result, bail};

use super::{
    super::{
        cluster::{Ending, Scenario, World},
        root,
        server::Server,
    },
    api::Api,
    real::{KUBERNETES, Real},
};

pub(super) const SCENARIOS: &[Scenario] =
    &[Scenario { name: "kube-apiserver: requests answered alike", short: false, run: compare }];

fn compare(world: &World, base: &Path) -> Result<Ending> {
    let stores = (Server::start(&world.etcd, &base.join("a"))?, Server::start(&world.etcd, &base.join("b"))?);
    let tokens = base.join("tokens.csv");
    fs::write(&tokens, scripts::TOKENS)?;
    let flags = ["--token-auth-file", tokens.to_str().context("a path that is no text")?];
    let mut ours = Api::start(world, &base.join("ours"), std::slice::from_ref(&stores.0.endpoint), &flags)?;
    let real = Real::start(world, &base.join("real"), &stores.1.endpoint, &ours.key())?;
    let targets = (target(&real.kubeconfig)?, target(&ours.kubeconfig)?);
    let report = report(&root()?.join("interop/requests"), &targets.0, &targets.1)?;
    ours.check_well()?;
    if !report.different.is_empty() {
        bail!("{} answers differ:\n{}", report.different.len(), report.different.join("\n\n"));
    }
    Ok(Ending::Well(format!("{} steps with {KUBERNETES}, {} meant to differ", report.steps, report.known)))
}

fn report(dir: &Path, real: &Target, ours: &Target) -> Result<Report> {
    let (mut known, mut report, mut names) = (Known::read(dir)?, Report::default(), Vec::new());
    let update = env::var("UPDATE_GOLDENFILES").is_ok_and(|value| value == "1");
    for (path, mut script) in scripts::read_dir(dir)? {
        let name = path.file_stem().context("a script without a name")?.to_string_lossy().into_owned();
        let answers = (scripts::run(&script, real)?, scripts::run(&script, ours)?);
        if update {
            script.keep(&name, Some(&answers.0), &answers.1, &mut known);
            fs::write(&path, script.to_string())?;
        }
        report.real(&name, &script, &answers.0);
        report.ours(&name, &script, &answers.1, &mut known);
        names.push(name);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let stale = known.unused(&names).into_iter().map(|row| format!("no longer differs, remove it: {row}"));
    report.different.extend(stale);
    Ok(report)
}

/// Where the server of a kubeconfig listens.
fn target(kubeconfig: &Path) -> Result<Target> {
    let text = fs::read_to_string(kubeconfig)?;
    let place = text.split("https://").nth(1).and_then(|rest| rest.split(['\'', '\n', ',', '"', ' ']).next());
    let address: SocketAddr = place.context("a kubeconfig without a server")?.parse()?;
    Target::new(address)
}
