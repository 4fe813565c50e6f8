//! Three Lockgate members with faulty disks and data dirs: a full disk, a cluster saved from one dir, and from a snapshot.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use harness::AtEnd;
use serde_json::json;

use super::{
    super::tool,
    Ending, Scenario, World,
    faults::{SHORT_LOG, ours, pause},
    group::Group,
    member::Host,
    traffic::Traffic,
    verdict,
};

pub(crate) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "ours: disk full on one member", short: true, run: disk_full },
    Scenario { name: "ours: --force-new-cluster", short: false, run: force_new_cluster },
    Scenario { name: "ours: restored by lockgateutl", short: false, run: restored_by_ours },
    Scenario { name: "ours: restored by etcdutl", short: false, run: restored_by_etcdutl },
];

/// Room for the first log segment and a small database.
const DISK_MB: u32 = 100;

fn disk_full(world: &World, base: &Path) -> Result<Ending> {
    let programs = [&world.ours, &world.ours, &world.ours];
    let mut group = Group::prepare(base, &programs, &vec![Host::default(); 3], &SHORT_LOG);
    let disk = match Disk::mount(&base.join("disk"), DISK_MB) {
        Ok(disk) => disk,
        Err(error) => return Ok(Ending::Skipped(format!("{error:#}"))),
    };
    group.members[2].dir = disk.path.join("m3");
    group.begin()?;
    let traffic = Traffic::start(group.endpoints(), world.seed)?;
    pause(1000);
    disk.fill()?;
    // Until the member's database needs a page more. If it leads, requests under way fail with it; others go on.
    let value = super::super::base64(&vec![b'x'; 100_000]);
    for n in 0..40 {
        let key = super::super::base64(format!("large/{n}").as_bytes());
        let _ = group.members[n % 2].ask("/v3/kv/put", &json!({"key": key, "value": value}));
        if !group.members[2].alive() {
            break;
        }
    }
    let ended = group.members[2].wait_end().context("a member without room must end")?;
    let log = group.members[2].log_text();
    ensure!(log.contains("No space left") || log.contains("no space left"), "it does not say why it ended: {log}");
    group.leader().context("the others go on")?;
    pause(1500);
    disk.free()?;
    // It was right to end with a fatal line, and is judged by what it says from now on.
    fs::rename(&group.members[2].log, base.join("m3-full.log"))?;
    group.restart(2);
    group.wait_member(2).context("when there is room again")?;
    let figures = verdict::finish(traffic, &mut group)?;
    drop(group);
    Ok(Ending::Well(format!("ended with {ended}; {figures}")))
}

/// A small disk in memory.
struct Disk {
    path: PathBuf,
    _unmount: AtEnd,
}

impl Disk {
    fn mount(path: &Path, mb: u32) -> Result<Disk> {
        fs::create_dir_all(path)?;
        let size = format!("size={mb}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(path);
        let done = tool::output(mount)?;
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        ensure!(done.status.success(), "no tmpfs can be mounted here, root may: {}", error.trim());
        // Lazily: a member that still runs after a failure holds files there.
        let unmount = AtEnd::run(r#"umount -l "$1""#, &[&path.to_string_lossy()]);
        Ok(Disk { path: path.to_owned(), _unmount: unmount })
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }

    fn fill(&self) -> Result<()> {
        let mut file = File::create(self.ballast())?;
        for size in [1 << 20, 1 << 12] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        Ok(())
    }

    fn free(&self) -> Result<()> {
        Ok(fs::remove_file(self.ballast())?)
    }
}

fn force_new_cluster(world: &World, base: &Path) -> Result<Ending> {
    let (mut group, traffic) = ours(world, base, &SHORT_LOG)?;
    pause(2000);
    traffic.hold()?;
    let (hashes, revision) = (group.check_hashes()?, group.revision(0)?);
    // Entries that the member has not recorded as committed are dropped, as in etcd: one more entry records them.
    group.members[0].ask_until_ok("/v3/kv/put", &json!({"key": "eA==", "value": "eA=="}))?;
    group.stop_all();
    group.members.truncate(1);
    let initial = group.initial();
    group.members[0].start(&initial, "existing", &["--force-new-cluster"]);
    group.wait_member(0).context("alone, by --force-new-cluster")?;
    let list = group.members[0].ask("/v3/cluster/member/list", &json!({}))?;
    ensure!(list["members"].as_array().map(Vec::len) == Some(1), "it should be alone: {list}");
    let hash = group.hash(0, revision)?;
    ensure!(hash == hashes[0].1, "the hash was {hashes:?} and is {hash}");
    traffic.set_endpoints(group.endpoints());
    traffic.resume();
    pause(1000);
    group.members[0].stop()?;
    group.restart(0);
    group.wait_member(0).context("without the flag")?;
    for name in ["n2", "n3"] {
        let n = group.add(name, &world.ours, Host::default(), false)?;
        group.wait_member(n)?;
    }
    traffic.set_endpoints(group.endpoints());
    pause(2000);
    Ok(verdict::finish(traffic, &mut group)?.into())
}

fn restored_by_ours(world: &World, base: &Path) -> Result<Ending> {
    restored(world, base, &world.our_utl, &SHORT_LOG)
}

/// Real etcdutl of 3.7 knows storage versions up to its own.
fn restored_by_etcdutl(world: &World, base: &Path) -> Result<Ending> {
    let flags = [SHORT_LOG[0], SHORT_LOG[1], "--initial-cluster-version=3.7"];
    restored(world, base, &world.etcdutl, &flags)
}

/// All dirs are lost; three new ones are made of a snapshot, and nothing that was acknowledged before it is missing.
fn restored(world: &World, base: &Path, utl: &Path, flags: &[&str]) -> Result<Ending> {
    let (mut group, traffic) = ours(world, base, flags)?;
    pause(2000);
    traffic.hold()?;
    let hashes = group.hashes()?;
    let file = base.join("snapshot.db");
    let endpoint = group.members[1].endpoint();
    tool::run(&world.etcdctl, &["--endpoints", &endpoint, "snapshot", "save", &file.to_string_lossy()])?;
    group.stop_all();
    let initial = group.initial();
    for member in &mut group.members {
        member.dir = base.join(format!("{}-restored", member.name));
        tool::run(
            utl,
            &[
                "snapshot",
                "restore",
                &file.to_string_lossy(),
                "--name",
                &member.name,
                "--initial-cluster",
                &initial,
                "--initial-advertise-peer-urls",
                &member.peer_url(),
                "--data-dir",
                &member.dir.to_string_lossy(),
            ],
        )?;
    }
    group.begin().context("from the restored dirs")?;
    let restored = group.hashes()?;
    ensure!(restored == hashes, "hashes were {hashes:?} and are {restored:?}");
    traffic.resume();
    pause(3000);
    Ok(verdict::finish(traffic, &mut group)?.into())
}
