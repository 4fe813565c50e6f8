//! Ways between versions, with the servers of both ends.

use std::path::Path;

use anyhow::{Context, Result};

use super::{
    super::{
        report::{Step, pair},
        scenario::Lines,
        server::{End, Program, Server},
        tool,
    },
    Release, Tools,
    fill::{ROOT_PASSWORD, USER_PASSWORD, Wish, fill, seen},
};

/// Fills a dir, brings it to another version, lets a server of that version run on it, and brings it back.
pub(super) fn there_and_back(tools: &Tools, from: &Release, to: &Release, base: &Path) -> Result<Vec<Step>> {
    let dir = base.join("data");
    let before = fill(from, &dir, tools.seed, Wish::plain())?;
    let mut steps = go(tools, &dir, to, &before, &[])?;
    steps.extend(go(tools, &dir, from, &before, &[])?);
    Ok(steps)
}

/// Migrates, checks that no hash has changed, and lets the server look. It must be able to write, too.
fn go(tools: &Tools, dir: &Path, to: &Release, expected: &Lines, extra: &[&str]) -> Result<Vec<Step>> {
    let (version, hash) = (to.version, tools.hash(dir)?);
    tools.migrate(dir, version, extra).with_context(|| format!("to {version}"))?;
    let mut steps = vec![Step::new(format!("hashkv on the way to {version}"), hash, tools.hash(dir)?)];
    let found = look(&to.server, dir).with_context(|| format!("{version} on the migrated dir"))?;
    steps.extend(named(&format!("seen by {version}"), pair(expected.clone(), found)));
    Ok(steps)
}

pub(super) fn look(program: &Program, dir: &Path) -> Result<Lines> {
    let mut server = Server::start(program, dir)?;
    let mut http = server.http()?;
    let found = seen(&mut http)?;
    drop(http);
    server.check_alive()?;
    server.end(End::Stop)?;
    Ok(found)
}

pub(super) fn named(prefix: &str, steps: Vec<Step>) -> Vec<Step> {
    steps.into_iter().map(|step| Step { name: format!("{prefix}: {}", step.name), ..step }).collect()
}

/// With authentication on, Lockgate and the real server know every user, on the dir that was brought there and back.
pub(super) fn with_auth_on(tools: &Tools, release: &Release, base: &Path) -> Result<Vec<Step>> {
    let dir = base.join("data");
    let before = fill(release, &dir, tools.seed, Wish { auth_on: true, ..Wish::plain() })?;
    let hash = tools.hash(&dir)?;
    tools.migrate(&dir, "3.8", &[])?;
    let mut steps = vec![Step::new("hashkv at 3.8", hash.clone(), tools.hash(&dir)?)];
    let ours = tools.releases.last().context("ours")?;
    let server = Server::start(&ours.server, &dir)?;
    steps.extend(named("ours", who_may(release, &server)?));
    server.stop()?;
    tools.migrate(&dir, release.version, &[])?;
    steps.push(Step::new("hashkv back again", hash, tools.hash(&dir)?));
    let server = Server::start(&release.server, &dir)?;
    steps.extend(who_may(release, &server)?);
    let root = format!("root:{ROOT_PASSWORD}");
    tool::run(&release.etcdctl, &["--endpoints", &server.endpoint, "--user", &root, "auth", "disable"])?;
    let mut http = server.http()?;
    let found = seen(&mut http)?;
    drop(http);
    server.stop()?;
    steps.extend(named("seen again", pair(before, found)));
    Ok(steps)
}

fn who_may(release: &Release, server: &Server) -> Result<Vec<Step>> {
    let ask = |user: &str, words: &[&str]| {
        let first = ["--endpoints", server.endpoint.as_str(), "--user", user];
        tool::run(&release.etcdctl, &[&first, words].concat())
    };
    let root = format!("root:{ROOT_PASSWORD}");
    let alice = format!("alice:{USER_PASSWORD}");
    let works = |result: Result<String>| result.is_ok().to_string();
    Ok(vec![
        Step::new("root logs in", "alice\nroot\n", ask(&root, &["user", "list"])?),
        Step::new("alice reads her keys", "true", works(ask(&alice, &["get", "k/", "--prefix"]))),
        Step::new("alice reads no other", "false", works(ask(&alice, &["get", "big/1"]))),
        Step::new("a wrong password", "false", works(ask("alice:wrong", &["get", "k/01"]))),
        Step::new(
            "no user",
            "false",
            works(tool::run(&release.etcdctl, &["--endpoints", &server.endpoint, "get", "k/01"])),
        ),
    ])
}

/// The log in a directory of its own, which needs the journal.
pub(super) fn log_elsewhere(tools: &Tools, from: &Release, to: &Release, base: &Path) -> Result<Vec<Step>> {
    let (dir, log) = (base.join("data"), base.join("log"));
    let log = log.to_string_lossy().into_owned();
    let with_log = |release: &Release| {
        let mut release = release.clone();
        release.server.flags.push(format!("--wal-dir={log}"));
        release
    };
    let (from, to, extra) = (with_log(from), with_log(to), ["--wal-dir", &log]);
    let before = fill(&from, &dir, tools.seed + 1, Wish::plain())?;
    let mut steps = go(tools, &dir, &to, &before, &extra)?;
    steps.extend(go(tools, &dir, &from, &before, &extra)?);
    steps.push(Step::new("no log in the data dir", "false", dir.join("member/wal").exists().to_string()));
    Ok(steps)
}
