//! Everyday work with kubectl (`interop/kubectl/everyday.txt`): Lockgate must say what a real kube-apiserver said, to the letter. With
//! `UPDATE_GOLDENFILES=1` a real one is asked, and the file written again.

use std::{env, fs, path::Path};

use anyhow::{Context, Result, ensure};

use super::{
    super::{
        cluster::{Ending, Scenario, World},
        root,
        server::Server,
    },
    api::Pair,
    kubectl::{Shell, newest},
    real::{KUBERNETES, Real},
    transcript::{self, Part, Said},
};

pub(super) const SCENARIOS: &[Scenario] = &[Scenario { name: "kubectl: everyday work", short: false, run: everyday }];

fn everyday(world: &World, base: &Path) -> Result<Ending> {
    let path = root()?.join("interop/kubectl/everyday.txt");
    let parts = transcript::parse(&fs::read_to_string(&path)?);
    let mut pair = Pair::start(world, base, &world.ours)?;
    if env::var_os("UPDATE_GOLDENFILES").is_some() {
        let store = Server::start(&world.etcd, &base.join("real-store"))?;
        let real = Real::start(world, &base.join("real"), &store.endpoint, &pair.api.key())?;
        let told = tell(world, &base.join("told"), &real.kubeconfig, parts)?;
        fs::write(&path, transcript::print(&told))?;
        return Ok(Ending::Well(format!("written anew with {KUBERNETES}")));
    }
    let wanted = transcript::parse(&transcript::print(&parts));
    let told = tell(world, &base.join("told"), &pair.api.kubeconfig, parts)?;
    pair.api.check_well()?;
    let differences: Vec<String> =
        wanted.iter().zip(&told).filter_map(|(wanted, told)| difference(wanted, told)).collect();
    ensure!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    Ok(Ending::Well(format!(
        "{} command lines as {KUBERNETES} answers them",
        told.iter().filter(|part| is_step(part)).count()
    )))
}

/// Returns the parts with the answers of this server.
fn tell(world: &World, base: &Path, kubeconfig: &Path, parts: Vec<Part>) -> Result<Vec<Part>> {
    let mut shell = Shell::new(base, &newest(world)?)?;
    shell.env.push(("KUBECONFIG", kubeconfig.to_owned()));
    let server = address(&fs::read_to_string(kubeconfig)?)?;
    let step = |part: Part| match part {
        Part::Step { line, command, .. } => {
            let (code, out, err) = shell.channels(&command)?;
            Ok(Part::Step { line, command, said: Said::new(code, &out, &err, &server) })
        }
        text => Ok(text),
    };
    parts.into_iter().map(step).collect()
}

fn address(kubeconfig: &str) -> Result<String> {
    let (_, rest) = kubeconfig.split_once("https://").context("the kubeconfig names no server")?;
    Ok(rest.chars().take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ':')).collect())
}

fn is_step(part: &Part) -> bool {
    matches!(part, Part::Step { .. })
}

fn difference(wanted: &Part, told: &Part) -> Option<String> {
    match (wanted, told) {
        (Part::Step { line, command, said: wanted }, Part::Step { said, .. }) if wanted != said => {
            Some(format!("line {line}: $ {command}\nexpected:\n{wanted}said:\n{said}"))
        }
        _ => None,
    }
}
