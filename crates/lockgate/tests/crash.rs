//! What was answered is there after any end of the process, and nothing is there twice.

mod common;

use std::{
    collections::BTreeMap,
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use client::{Client, Get, Put};
use common::{Member, Place, Rng};

const ROUNDS: u64 = 10;
const WRITERS: u64 = 8;

/// What each writer knows of its key: the number answered last, and the number sent last.
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

fn number(value: &[u8]) -> u64 {
    std::str::from_utf8(value).expect("text").parse().expect("number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_time() {
    let mut rng = Rng::from_env();
    let (place, known) = (Place::new(), Known::default());
    let mut revision = 0;
    for round in 0..ROUNDS {
        // Few entries between snapshot records, so that restarts begin at different ones.
        let member = place.start(&["--snapshot-count=50"]);
        let now = check(&member, &known, round).await;
        assert!(now >= revision, "round {round}: revision {now} after {revision}");
        let client = member.client().await;
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| tokio::spawn(write(client.clone(), writer, known.clone()))).collect();
        tokio::time::sleep(Duration::from_millis(20 + rng.below(300))).await;
        revision = client.status().await.expect("status").header.expect("header").revision;
        if rng.below(4) == 0 {
            // The other way to end, under the same load.
            let ended = member.stop();
            assert!(ended.status.success(), "{}", ended.log);
        } else {
            member.kill();
        }
        for writer in writers {
            writer.await.expect("writer");
        }
    }
    let member = place.start(&[]);
    check(&member, &known, ROUNDS).await;
    let written: u64 = known.lock().expect("lock").values().map(|(_, sent)| sent).sum();
    assert!(written > ROUNDS, "{written} writes");
}

/// A first start that is cut off anywhere leaves a dir that the next one takes up.
#[test]
fn killed_while_a_dir_is_made() {
    let mut rng = Rng::from_env();
    for _ in 0..ROUNDS {
        let place = Place::new();
        for _ in 0..2 {
            let member = place.spawn(&[]);
            std::thread::sleep(Duration::from_micros(rng.below(100_000)));
            member.kill();
        }
        place.start(&[]).kill();
    }
}

/// With a full disk the member ends and says so; with room again, everything answered is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disk_full() {
    let place = Place::new();
    // Files may grow to 72 MB: a log segment fits, the database soon does not.
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 140000; exec \"$@\"";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_lockgate")]);
    let mut member = place.spawn_command(command);
    member.wait_ready().expect("ready");
    let client = member.client().await.with_timeout(Duration::from_secs(10));
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
