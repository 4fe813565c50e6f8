//! Data dirs that real etcd and lockgate take over from each other, and those that lockgate must refuse.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use random::Random;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    fetch::{files_below, hex},
    load::{self, contents},
    peer,
    report::{Step, pair},
    scenario::Lines,
    server::{End, Program, Server},
    tool,
};

const OPERATIONS: u32 = 400;

/// The programs that the scenarios use.
pub(crate) struct Tools {
    pub etcd: Program,
    pub ours: Program,
    /// lockgateutl, or etcdutl standing in for it.
    pub our_utl: PathBuf,
    pub cache: PathBuf,
    pub seed: u64,
}

impl Tools {
    fn utl(&self, words: &[&str]) -> Result<String> {
        tool::run(&peer::find(&self.cache, peer::ETCD, "etcdutl")?, words)
    }
}

/// etcd fills a dir, lockgate takes it over and goes on, etcd takes it back, and lockgate once more.
pub(crate) fn take_over(tools: &Tools, how: End, dir: &Path) -> Result<Vec<Step>> {
    let dir = dir.join("data");
    let mut rng = Random::new(tools.seed);
    let by_etcd = fill(&tools.etcd, &dir, &mut rng, how)?;
    let (seen, by_ours) = see_and_fill(&tools.ours, &dir, &mut rng, how).context("lockgate on a dir of etcd")?;
    let mut steps = named("lockgate sees what etcd wrote", pair(by_etcd, seen));
    // A killed server leaves the end of its writes in the log alone, which offline tools do not read.
    if matches!(how, End::Stop) {
        steps.extend(offline(tools, &dir, &by_ours, "3.7.0")?);
    }
    let (seen, by_etcd) =
        see_and_fill(&tools.etcd, &dir, &mut rng, how).context("etcd on a dir that lockgate ran on")?;
    steps.extend(named("etcd sees what lockgate wrote", pair(by_ours, seen)));
    if matches!(how, End::Stop) {
        tools.utl(&["defrag", "--data-dir", &dir.to_string_lossy()])?;
    }
    let (seen, _) = see_and_fill(&tools.ours, &dir, &mut rng, how).context("lockgate on the dir once more")?;
    steps.extend(named("lockgate sees what etcd added", pair(by_etcd, seen)));
    Ok(steps)
}

/// lockgate founds a dir, and another server takes it over.
pub(crate) fn found(
    tools: &Tools,
    (founder, heir): (&Program, &Program),
    storage: &str,
    how: End,
    dir: &Path,
) -> Result<Vec<Step>> {
    let dir = dir.join("data");
    let mut rng = Random::new(tools.seed + 1);
    let by_ours = fill(founder, &dir, &mut rng, how)?;
    let mut steps = if matches!(how, End::Stop) { offline(tools, &dir, &by_ours, storage)? } else { Vec::new() };
    let (seen, by_heir) = see_and_fill(heir, &dir, &mut rng, how)?;
    steps.extend(named("etcd sees what lockgate founded", pair(by_ours, seen)));
    let (seen, _) = see_and_fill(founder, &dir, &mut rng, how)?;
    steps.extend(named("lockgate sees what etcd added", pair(by_heir, seen)));
    Ok(steps)
}

/// A dir of a release that lockgate cannot take over: refused with words that name versions, and left as it was.
pub(crate) fn refused(tools: &Tools, peer_dir: &str, dir: &Path) -> Result<Vec<Step>> {
    let dir = dir.join("data");
    let old = Program::new(peer::find(&tools.cache, peer_dir, "etcd")?);
    fill(&old, &dir, &mut Random::new(tools.seed + 2), End::Stop)?;
    let before = hashes(&dir)?;
    let (status, said) = Server::start_refused(&tools.ours, &dir)?;
    let minor = peer_dir.trim_start_matches("etcd-").rsplit_once('.').map_or(peer_dir, |(minor, _)| minor);
    let words = said.lines().last().unwrap_or_default();
    println!("   on a dir of {minor} it says: {words}");
    let after = hashes(&dir)?;
    Ok(vec![
        Step::new("it ends with a failure", "true", (!status.success()).to_string()),
        Step::new(format!("it names the version {minor}"), "true", said.contains(minor).to_string()),
        Step::new("it names the version it can take over", "true", said.contains("3.7").to_string()),
        Step::new("nothing in the dir has changed", format!("{before:#?}"), format!("{after:#?}")),
    ])
}

/// A snapshot of one server, restored by a tool and served by another server.
pub(crate) fn restore(tools: &Tools, from: &Program, utl: &Path, to: &Program, base: &Path) -> Result<Vec<Step>> {
    let (dir, backup, restored) = (base.join("data"), base.join("backup.db"), base.join("restored"));
    let backup_name = backup.to_string_lossy().into_owned();
    let server = Server::start(from, &dir)?;
    load::run(&mut server.http()?, &mut Random::new(tools.seed + 3), OPERATIONS)?;
    let before = contents(&mut server.http()?, false)?;
    let etcdctl = peer::find(&tools.cache, peer::ETCD, "etcdctl")?;
    tool::run(&etcdctl, &["--endpoints", &server.endpoint, "snapshot", "save", &backup_name])?;
    server.stop()?;
    let mut steps = Vec::new();
    for words in [&["snapshot", "status"][..], &["hashkv"]] {
        // Real tools write into what they look at, and then its checksum is wrong.
        let copy = base.join("copy.db");
        let ask = |tool: &Path| -> Result<String> {
            fs::copy(&backup, &copy)?;
            tool::run(tool, &[words, &[&copy.to_string_lossy(), "-w", "json"]].concat())
        };
        let etcdutl = peer::find(&tools.cache, peer::ETCD, "etcdutl")?;
        steps.push(Step::new(words.join(" "), ask(&etcdutl)?, ask(utl)?));
    }
    tool::run(utl, &["snapshot", "restore", &backup_name, "--data-dir", &restored.to_string_lossy()])?;
    let server = Server::start(to, &restored)?;
    let after = contents(&mut server.http()?, false)?;
    load::run(&mut server.http()?, &mut Random::new(tools.seed + 4), 50)?;
    server.stop()?;
    steps.extend(named("served as it was", pair(before, after)));
    // A damaged snapshot must not be restored.
    let mut bytes = fs::read(&backup)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&backup, bytes)?;
    let damaged = base.join("damaged");
    let refused =
        tool::run(utl, &["snapshot", "restore", &backup_name, "--data-dir", &damaged.to_string_lossy()]).is_err();
    steps.push(Step::new("a damaged snapshot is refused", "true", refused.to_string()));
    // etcdutl leaves a half dir behind.
    if utl.ends_with("lockgateutl") {
        steps.push(Step::new("and leaves no dir", "false", damaged.join("member").exists().to_string()));
    }
    Ok(steps)
}

fn fill(program: &Program, dir: &Path, rng: &mut Random, how: End) -> Result<Lines> {
    see_and_fill(program, dir, rng, how).map(|(_, filled)| filled)
}

/// The contents that a server finds in the dir, and those after it has worked on it.
fn see_and_fill(program: &Program, dir: &Path, rng: &mut Random, how: End) -> Result<(Lines, Lines)> {
    let mut server = Server::start(program, dir)?;
    let mut http = server.http()?;
    let seen = contents(&mut http, true)?;
    load::run(&mut http, rng, OPERATIONS)?;
    let filled = contents(&mut http, true)?;
    // An open connection would hold up the stop.
    drop(http);
    server.check_alive()?;
    server.end(how)?;
    Ok((seen, filled))
}

/// The answers of real tools about the files of a stopped server, compared with the server's.
fn offline(tools: &Tools, dir: &Path, online: &Lines, storage: &str) -> Result<Vec<Step>> {
    let db = dir.join("member/snap/db").to_string_lossy().into_owned();
    let online = online.first().context("the server was not asked for its hash")?;
    let online: Value = serde_json::from_str(&online.1)?;
    let hash: Value = serde_json::from_str(tools.utl(&["hashkv", &db, "-w", "json"])?.trim())?;
    let expected = json!({
        "hash": online["hash"], "hashRevision": load::number(&online["hash_revision"])?,
        "compactRevision": load::number(&online["compact_revision"])?,
    });
    let checked = tool::run(&peer::find(&tools.cache, peer::BBOLT, "bbolt")?, &["check", &db])?;
    let status: Value = serde_json::from_str(tools.utl(&["snapshot", "status", &db, "-w", "json"])?.trim())?;
    let revision = load::number(&online["header"]["revision"])?;
    Ok(vec![
        Step::new("etcdutl hashkv", expected.to_string(), hash.to_string()),
        Step::new("bbolt check", "OK", checked.trim()),
        Step::new("etcdutl snapshot status", revision.to_string(), status["revision"].to_string()),
        Step::new("its storage version", format!("{storage:?}"), status["version"].to_string()),
    ])
}

fn named(prefix: &str, steps: Vec<Step>) -> Vec<Step> {
    steps.into_iter().map(|step| Step { name: format!("{prefix}: {}", step.name), ..step }).collect()
}

fn hashes(dir: &Path) -> Result<BTreeMap<String, String>> {
    let name = |path: &Path| path.strip_prefix(dir).unwrap_or(path).to_string_lossy().into_owned();
    let hash = |path: PathBuf| Ok((name(&path), hex(&Sha256::digest(fs::read(&path)?))));
    files_below(dir)?.into_iter().map(hash).collect()
}
