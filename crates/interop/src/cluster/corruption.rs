//! One member's data is changed behind its back. Real etcd and Lockgate find it in the same ways, say the same and refuse the
//! same: before they serve, now and then, and at compactions.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use prost::Message as _;
use serde_json::{Value, json};

use super::{
    super::{base64, server::Program, wait::until_some},
    Ending, Scenario, World,
    group::Group,
};

pub(super) const SCENARIOS: &[Scenario] =
    &[Scenario { name: "corrupt: found by each check, as by real etcd", short: false, run: found }];

/// The member that is harmed.
const HARMED: usize = 2;

/// A way of finding it, and the flags that turn it on.
struct Check {
    name: &'static str,
    flags: &'static [&'static str],
    /// Waits for the consequence and returns it.
    see: fn(&mut Group) -> Result<Vec<String>>,
}

const CHECKS: &[Check] = &[
    Check { name: "at start", flags: &["--feature-gates=InitialCorruptCheck=true"], see: ends },
    Check { name: "now and then", flags: &["--corrupt-check-time=1s"], see: raises },
    Check {
        name: "at compactions",
        flags: &["--feature-gates=CompactHashCheck=true", "--compact-hash-check-time=1s"],
        see: raises_after_compaction,
    },
];

fn found(world: &World, base: &Path) -> Result<Ending> {
    for check in CHECKS {
        let run = |program: &Program, kind: &str| -> Result<Vec<String>> {
            let dir = base.join(format!("{kind} {}", check.name));
            fs::create_dir_all(&dir)?;
            harmed(program, &dir, check).with_context(|| format!("{kind}, {}", check.name))
        };
        let (ours, etcd) = (run(&world.ours, "ours")?, run(&world.etcd, "etcd")?);
        ensure!(ours == etcd, "{}: ours\n{}\netcd\n{}", check.name, ours.join("\n"), etcd.join("\n"));
    }
    Ok(Ending::Well(format!("{} checks find it and say what etcd's say", CHECKS.len())))
}

fn harmed(program: &Program, dir: &Path, check: &Check) -> Result<Vec<String>> {
    let mut group = Group::found(dir, &[program; 3], check.flags)?;
    for n in 0..20 {
        put(&group, 0, &format!("k{n}"))?;
    }
    // The hashes of all are the same, or nothing that is found below says anything.
    group.check_hashes().context("before anything was done")?;
    group.move_leader(0)?;
    group.members[HARMED].stop()?;
    harm(&group.members[HARMED].dir.join("member/snap/db"))?;
    group.restart(HARMED);
    (check.see)(&mut group)
}

/// Another value for the oldest key, of the same length. Everything else stays, so that the file is sound.
fn harm(db: &Path) -> Result<()> {
    let file = bolt::Db::open(db, bolt::Options::default())?;
    let mut tx = file.begin_write()?;
    let (key, row) = {
        let bucket = tx.bucket(b"key")?.context("no keys")?;
        let (key, row) = bucket.iter().next().context("no key")??;
        (key.to_vec(), row.to_vec())
    };
    let mut kv = client::mvccpb::KeyValue::decode(&row[..])?;
    kv.value = vec![b'!'; kv.value.len()].into();
    tx.put(b"key", &key, &kv.encode_to_vec())?;
    tx.commit()?;
    Ok(())
}

fn ends(group: &mut Group) -> Result<Vec<String>> {
    let ended = group.members[HARMED].wait_end().context("a member with other data must not serve")?;
    let log = group.members[HARMED].log_text();
    let says = ["found different hash values from remote peer", "found data inconsistency with peers"];
    for words in says {
        ensure!(log.contains(words), "it does not say {words:?}:\n{}", group.members[HARMED].log_tail());
    }
    put(group, 0, "the others go on")?;
    Ok(vec![format!("succeeds: {}", ended.success()), alarms(group, 0)?.to_string()])
}

fn raises(group: &mut Group) -> Result<Vec<String>> {
    group.wait_member(HARMED).or_else(|error| if is_raised(group) { Ok(()) } else { Err(error) })?;
    until_some("a member raises the alarm", || Ok(is_raised(group).then_some(())))?;
    let harmed = group.id(HARMED)?.to_string();
    let alarms = alarms(group, 0)?;
    ensure!(alarms[0]["memberID"] == harmed.as_str(), "the alarm should name {harmed}: {alarms}");
    let mut said = vec![format!("{} alarms, {}", alarms.as_array().map_or(0, Vec::len), alarms[0]["alarm"])];
    for n in 0..3 {
        said.push(refusal(put(group, n, "k0")));
        said.push(refusal(group.members[n].ask("/v3/kv/range", &json!({"key": base64(b"k0")}))));
    }
    Ok(said)
}

fn raises_after_compaction(group: &mut Group) -> Result<Vec<String>> {
    group.wait_member(HARMED)?;
    group.members[0].ask("/v3/kv/compaction", &json!({"revision": "15", "physical": true}))?;
    raises(group)
}

fn is_raised(group: &Group) -> bool {
    alarms(group, 0).is_ok_and(|alarms| alarms.as_array().is_some_and(|alarms| !alarms.is_empty()))
}

fn alarms(group: &Group, n: usize) -> Result<Value> {
    let answer = group.members[n].ask("/v3/maintenance/alarm", &json!({"action": "GET"}))?;
    Ok(answer.get("alarms").cloned().unwrap_or_else(|| json!([])))
}

fn put(group: &Group, n: usize, key: &str) -> Result<Value> {
    group.members[n].ask("/v3/kv/put", &json!({"key": base64(key.as_bytes()), "value": base64(b"value")}))
}

/// The server's message without the request.
fn refusal(answer: Result<Value>) -> String {
    match answer {
        Ok(_) => "taken".to_owned(),
        Err(error) => {
            let text = format!("{error:#}");
            text.split_once(" with ").map_or(text.clone(), |(_, said)| said.to_owned())
        }
    }
}
