//! A sync that fails ends the member: nothing is acknowledged that may not be on disk, and all that was is there again.
//!
//! Needs `cargo test -p lockgate --features failpoints failed_sync::`; says so and passes otherwise.

use crate::common;

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use client::{Client, ConnectOptions, Get, Put};
use common::{BINARY, Ended, Member, Place};

const ERROR: &str = "the disk is gone";

/// A member whose sync fails after so many that do not.
fn failing(place: &Place, point: &str, syncs: u64) -> Member {
    let mut command = Command::new(BINARY);
    command.env("GOFAIL_FAILPOINTS", format!("{point}={syncs}*off->return(\"{ERROR}\")"));
    let mut member = place.spawn_command(command);
    member.wait_ready().unwrap_or_else(|ended| panic!("{point} {syncs}: {}", ended.log));
    member
}

fn is_possible() -> bool {
    if !failpoint::ENABLED {
        eprintln!("SKIPPED: failpoints are not compiled in; add --features failpoints");
    }
    failpoint::ENABLED
}

fn assert_loud(ended: &Ended) {
    assert_eq!(ended.status.code(), Some(1), "{}", ended.log);
    let why = ended.log.lines().find(|line| line.starts_with("lockgate: ")).unwrap_or_default();
    assert!(why.contains(ERROR), "{}", ended.log);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_log() {
    if !is_possible() {
        return;
    }
    let place = Place::new();
    place.start(&[]).stop();
    for syncs in [10, 25, 60] {
        let mut member = failing(&place, "walBeforeSync", syncs);
        let client = member.client().await;
        let mut acknowledged = 0;
        while client.put(Put::new(format!("{syncs}/{acknowledged:03}"), "v")).await.is_ok() {
            acknowledged += 1;
            assert!(acknowledged < syncs, "the sync never failed");
        }
        assert_loud(&member.wait_end());

        let member = place.start(&[]);
        let found = member.client().await.get(Get::prefix(format!("{syncs}/"))).await.expect("get").count as u64;
        // The one that was not answered may be there or not.
        assert!(found == acknowledged || found == acknowledged + 1, "{found} of {acknowledged}");
        member.stop();
    }
}

/// The log has everything: what was answered before the database failed, and while it did. `survives` says whether what the
/// failed sync was for reached the disk all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_database() {
    if !is_possible() {
        return;
    }
    let place = Place::new();
    place.start(&[]).stop();
    let mut answered = 0;
    for (point, syncs, survives) in [
        ("beforeSyncDataPages", 0, true),
        ("beforeSyncDataPages", 5, true),
        ("beforeSyncMetaPage", 0, false),
        ("beforeSyncMetaPage", 5, true),
        ("beforeSyncMetaPage", 9, false),
    ] {
        let mut member = failing(&place, point, syncs);
        let known = Arc::new(AtomicU64::new(answered));
        let reader = tokio::spawn(read(member.client().await, known.clone()));
        let sent = write(&member.client().await, &known).await;
        assert_loud(&member.wait_end());
        reader.await.expect("answers contradict one another");
        answered = known.load(Ordering::SeqCst);
        if !survives {
            lose_newest_meta(&place);
        }

        let member = place.start(&[]);
        let found = value(&member.client().await).await.expect("get");
        assert!(found == answered || found == sent, "{point} {syncs}: {found} for {answered}..={sent}");
        let versions = member.client().await.get("k").await.expect("get").kvs[0].version as u64;
        assert_eq!(versions, found, "{point} {syncs}: written twice, or not at all");
        answered = found;
        member.stop();
    }
}

/// An API server without its store would be of no use, and nobody would know why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_member_within_a_playground() {
    if !is_possible() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let mut playground = Command::new(BINARY)
        .args(["playground", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(dir.path())
        .env("GOFAIL_FAILPOINTS", format!("walBeforeSync=60*off->return(\"{ERROR}\")"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut first = String::new();
    BufReader::new(playground.stdout.as_mut().expect("a pipe")).read_line(&mut first).expect("it says where it is");
    let store = first.trim().trim_end_matches('.').rsplit(' ').next().expect("an address");
    let client = Client::connect([store], ConnectOptions::new()).await.expect("a client");
    write(&client, &AtomicU64::new(0)).await;

    let ended = playground.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("lockgate: the embedded member has stopped: ") && said.contains(ERROR), "{said}");
}

/// Puts rising numbers until the member is gone; gives the last that was sent.
async fn write(client: &Client, known: &AtomicU64) -> u64 {
    let begin = Instant::now();
    for number in known.load(Ordering::SeqCst) + 1.. {
        assert!(begin.elapsed() < Duration::from_secs(60), "the sync never failed");
        if client.put(Put::new("k", number.to_string())).await.is_err() {
            return number;
        }
        known.store(number, Ordering::SeqCst);
    }
    0
}

/// Reads until the member is gone: never less than was known before, nor than was read before.
async fn read(client: Client, known: Arc<AtomicU64>) {
    let mut least = known.load(Ordering::SeqCst);
    while let Some(found) = value(&client).await {
        assert!(found >= least, "{found} after {least}");
        least = found.max(known.load(Ordering::SeqCst));
    }
}

/// The number in the key; 0 if it is not there.
async fn value(client: &Client) -> Option<u64> {
    let found = client.get("k").await.ok()?;
    let text = found.kvs.first().map(|kv| String::from_utf8_lossy(&kv.value).into_owned());
    Some(text.map_or(0, |text| text.parse().expect("a number")))
}

/// As if the power had been cut: the meta page that could not be synced is not there.
fn lose_newest_meta(place: &Place) {
    const PAGE: usize = 4096;
    /// Where a meta page has its transaction: behind the page's head of 16 bytes.
    const TXID: usize = 16 + 48;
    let mut file = fs::read(place.db()).expect("database");
    let txid = |slot: usize| {
        let at = slot * PAGE + TXID;
        u64::from_le_bytes(file[at..at + 8].try_into().expect("8 bytes"))
    };
    let newest = if txid(0) > txid(1) { 0 } else { 1 };
    file[newest * PAGE..(newest + 1) * PAGE].fill(0);
    fs::write(place.db(), file).expect("database");
}
