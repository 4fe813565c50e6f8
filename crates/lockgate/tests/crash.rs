//! Everything that was answered is there after any end of the process, and nothing is there twice.

use crate::common::{BINARY, place};

use std::{
    collections::BTreeMap,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use client::{Client, Compare, Get, Put, Txn};
use harness::{
    Member,
    asynchronous::{finish, until},
    seed,
};
use random::Random;

const ROUNDS: u64 = 10;
const WRITERS: u64 = 8;
/// Long enough to write under a lease on a loaded machine, and short enough to wait for its end.
const LEASE_SECONDS: i64 = 5;

/// The number answered last and the number sent last, for each writer's key.
type Known = Arc<Mutex<BTreeMap<u64, (u64, u64)>>>;

/// Puts rising numbers on one key until the member is gone.
async fn write(client: Client, writer: u64, known: Known) {
    let (_, sent) = known.lock().expect("lock").get(&writer).copied().unwrap_or_default();
    for number in sent + 1.. {
        known.lock().expect("lock").entry(writer).or_default().1 = number;
        let put = Put::new(format!("key/{writer}"), number.to_string());
        match client.put(put).await {
            Ok(_) => known.lock().expect("lock").entry(writer).or_default().0 = number,
            Err(_) => return,
        }
    }
}

/// A key holds what was answered last or what was sent last, and was written as often as its number says or, for each
/// write without an answer, once less.
async fn check(member: &Member, known: &Known, round: u64) -> i64 {
    let found = member.client().await.get(Get::prefix("key/")).await.expect("get");
    let found: BTreeMap<_, _> = found
        .kvs
        .iter()
        .map(|kv| (String::from_utf8_lossy(&kv.key).into_owned(), (number(&kv.value), kv.version)))
        .collect();
    for (writer, (answered, sent)) in known.lock().expect("lock").iter_mut() {
        let (value, version) = found.get(&format!("key/{writer}")).copied().unwrap_or_default();
        assert!(value == *answered || value == *sent, "round {round}: {value} for {answered}..={sent} of {writer}");
        let lost = (round + 1).min(value);
        let versions = value - lost..=value;
        assert!(versions.contains(&(version as u64)), "round {round}: version {version} for {value} of {writer}");
        *answered = value;
    }
    member.client().await.status().await.expect("status").header.expect("header").revision
}

/// Compactions and defragmentations all the time, so that ends fall into them.
async fn housekeeping(client: Client) {
    while let Ok(status) = client.status().await {
        let revision = status.header.expect("header").revision - 5;
        // Refusals because it is too early or too late are expected.
        let _ = client.compact(revision, false).await;
        let _ = client.defragment().await;
    }
}

fn number(value: &[u8]) -> u64 {
    std::str::from_utf8(value).expect("text").parse().expect("number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_time() {
    let mut random = Random::new(seed());
    let (place, known) = (place(), Known::default());
    let mut revision = 0;
    for round in 0..ROUNDS {
        // Few entries between snapshot records, so that restarts begin at different ones.
        let member = place.start(&["--snapshot-count=50"]);
        let now = check(&member, &known, round).await;
        assert!(now >= revision, "round {round}: revision {now} after {revision}");
        let client = member.client().await;
        // A write that was certainly not sent is retried until this timeout.
        let hasty = client.with_timeout(Duration::from_secs(3));
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| tokio::spawn(write(hasty.clone(), writer, known.clone()))).collect();
        let housekeeping = tokio::spawn(housekeeping(hasty));
        let before = answered(&known);
        until("a write is answered", async || answered(&known) > before).await;
        // A random moment, not a wait for something.
        tokio::time::sleep(Duration::from_millis(random.below(300))).await;
        revision = client.status().await.expect("status").header.expect("header").revision;
        if random.one_in(4) {
            // The other way to end, under the same load.
            let ended = member.stop();
            assert_eq!(ended.by_signal(), Some(15), "{}", ended.log);
        } else {
            member.kill();
        }
        for writer in writers {
            finish("a writer sees the end", writer).await.expect("writer");
        }
        housekeeping.abort();
    }
    let member = place.start(&[]);
    check(&member, &known, ROUNDS).await;
}

/// How many writes were answered.
fn answered(known: &Known) -> u64 {
    known.lock().expect("lock").values().map(|(answered, _)| answered).sum()
}

/// A first start that is cut off anywhere leaves a dir that the next one takes up.
#[test]
fn killed_while_a_dir_is_made() {
    let mut random = Random::new(seed());
    for _ in 0..ROUNDS {
        let place = place();
        for _ in 0..2 {
            let member = place.spawn(&[]);
            // A random moment, not a wait for something.
            std::thread::sleep(Duration::from_micros(random.below(100_000)));
            member.kill();
        }
        place.start(&[]).kill();
    }
}

/// From the first moment of every life leases can be renewed, and those that nobody renews end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_live_on() {
    let place = place();
    let member = place.start(&[]);
    let client = member.client().await;
    let (long, short) = (1000, 3);
    client.lease_grant(600, long).await.expect("grant");
    client.lease_grant(LEASE_SECONDS, short).await.expect("grant");
    client.put(Put::new("long", "").lease(long)).await.expect("put");
    client.put(Put::new("short", "").lease(short)).await.expect("put");
    member.kill();
    for _ in 0..5 {
        let member = place.start(&[]);
        let renewed = member.client().await.lease_keep_alive_once(long).await.expect("renew");
        assert_eq!(renewed.ttl, 600);
        member.kill();
    }
    let member = place.start(&[]);
    let client = member.client().await;
    until("the lease ends", async || client.get("short").await.expect("get").count == 0).await;
    assert_eq!(client.get("long").await.expect("get").count, 1);
    assert_eq!(client.leases().await.expect("leases").leases.len(), 1);
}

/// A compaction that was answered goes on after a crash, to the same end as one that was not cut off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_goes_on() {
    let place = place();
    let member = place.start(&["--compaction-batch-limit=10", "--compaction-sleep-interval=1s"]);
    let client = member.client().await;
    for i in 0..300 {
        client.put(Put::new(format!("k{}", i % 7), i.to_string())).await.expect("put");
    }
    let at = |revision| client.hash_kv(revision);
    let before = at(0).await.expect("hash");
    client.compact(250, false).await.expect("compact");
    member.kill();

    let mut member = place.start(&[]);
    let client = member.client().await;
    member.wait_log("finished scheduled compaction");
    let error = client.get(Get::key("k1").revision(249)).await.unwrap_err();
    assert_eq!(error.kind(), Some(client::Kind::Compacted));
    client.get(Get::key("k1").revision(250)).await.expect("get");
    let after = client.hash_kv(0).await.expect("hash");
    assert_eq!((after.compact_revision, after.hash_revision), (250, before.hash_revision));
    assert_eq!(after.hash, uncut_hash().await, "as if it had not been cut off");
}

async fn uncut_hash() -> u32 {
    let place = place();
    let member = place.start(&[]);
    let client = member.client().await;
    for i in 0..300 {
        client.put(Put::new(format!("k{}", i % 7), i.to_string())).await.expect("put");
    }
    client.compact(250, true).await.expect("compact");
    client.hash_kv(0).await.expect("hash").hash
}

/// A command that starts a member whose files may grow to this many blocks of 512 bytes; larger writes fail.
fn limited(blocks: u32) -> Command {
    let mut command = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    command.args(["-c", &script, "sh", BINARY]);
    command
}

/// A log that cannot be written ends the member: the failed write is not answered with success, the message names the
/// log, and the next start has everything that was answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_full() {
    let place = place();
    // A segment of 64 MB fits with 10 KB to spare, but not the record that would reach over its end.
    let mut member = place.spawn_command(limited(125_000 + 20)).ready();
    let client = member.client().await;
    // Entries that fill the log and leave the database as it is, so that the log is the first to be full.
    let only_logged = || {
        let compare = Compare::version("k").gt(1_000_000);
        Txn::new().when([compare]).and_then([Put::new("big", vec![7u8; 1 << 20]).into()])
    };
    let mut answered = 0;
    while answered < 500 {
        if client.put(Put::new(format!("k{answered:03}"), "v")).await.is_err() {
            break;
        }
        answered += 1;
        if client.txn(only_logged()).await.is_err() {
            break;
        }
    }
    let ended = member.wait_end();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.log);
    let why = ended.log.lines().find(|line| line.starts_with("lockgate: ")).unwrap_or_default();
    assert!(why.contains("File too large") && why.contains(".wal"), "{}", ended.log);
    assert!((50..70).contains(&answered), "{answered} answered");
    let member = place.start(&[]);
    let found = member.client().await.get(Get::prefix("k").count_only()).await.expect("get").count;
    assert!(found == answered || found == answered + 1, "{found} of {answered}");
}

/// With a full disk the member ends and says so; with room again, everything answered is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disk_full() {
    let place = place();
    // Files may grow to 72 MB: a log segment fits, the database soon does not.
    let mut member = place.spawn_command(limited(140_000)).ready();
    let client = member.client().await;
    let value = vec![7u8; 1 << 20];
    let mut answered = 0;
    while answered < 500 && client.put(Put::new(format!("k{answered:03}"), value.clone())).await.is_ok() {
        answered += 1;
    }
    let ended = member.wait_end();
    assert!(!ended.status.success() && ended.log.contains("File too large"), "{}: {}", ended.status, ended.log);
    assert!(answered > 10, "{answered} answered");
    let member = place.start(&[]);
    let found = member.client().await.get(Get::prefix("k").count_only()).await.expect("get").count;
    assert!(found == answered || found == answered + 1, "{found} of {answered}");
}

/// A received database that raft ignores would stay as long as the process runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_received_database_that_was_ignored_is_removed() {
    let place = place();
    let member = place.start(&["--snapshot-count=10"]);
    let ignored = place.data().join("member/snap/0000000000000002.snap.db");
    std::fs::write(&ignored, b"late").expect("write");
    let client = member.client().await;
    until("the file is removed", async || {
        client.put(Put::new("key", "value")).await.expect("put");
        !ignored.exists()
    })
    .await;
}
