//! A failed sync ends the member: nothing is acknowledged that may not be on disk, and everything that was acknowledged is
//! there after the next start.
//!
//! Needs `cargo test -p lockgate --features failpoints failed_sync::`; otherwise each test is reported as skipped.

use crate::common::{BINARY, has_failpoints, place};

use std::{
    fs,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use client::{Client, ConnectOptions, Get, Put};
use harness::{Ended, Place, Process, asynchronous::finish, tempdir, wait_max};
use tokio::task::JoinHandle;

const ERROR: &str = "the disk is gone";

/// A command for a program whose sync fails after `syncs` successful ones.
fn failing(point: &str, syncs: u64) -> Command {
    let mut command = Command::new(BINARY);
    command.env("GOFAIL_FAILPOINTS", format!("{point}={syncs}*off->return(\"{ERROR}\")"));
    command
}

fn assert_loud(ended: &Ended) {
    assert_eq!(ended.status.code(), Some(1), "{}", ended.log);
    let why = ended.log.lines().find(|line| line.starts_with("lockgate: ")).unwrap_or_default();
    assert!(why.contains(ERROR), "{}", ended.log);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_log() {
    if !has_failpoints() {
        return;
    }
    let place = place();
    place.start(&[]).stop();
    for syncs in [10, 25, 60] {
        let mut member = place.spawn_command(failing("walBeforeSync", syncs)).ready();
        let client = member.client().await;
        let mut acknowledged = 0;
        while client.put(Put::new(format!("{syncs}/{acknowledged:03}"), "v")).await.is_ok() {
            acknowledged += 1;
            assert!(acknowledged < syncs, "the sync never failed");
        }
        assert_loud(&member.wait_end());

        let member = place.start(&[]);
        let found = member.client().await.get(Get::prefix(format!("{syncs}/"))).await.expect("get").count as u64;
        // The put without an answer may be there or not.
        assert!(found == acknowledged || found == acknowledged + 1, "{found} of {acknowledged}");
        member.stop();
    }
}

/// The log has everything that was answered before and during the failure of the database. `survives` is true if the
/// pages of the failed sync reach the disk nevertheless.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_database() {
    if !has_failpoints() {
        return;
    }
    let place = place();
    place.start(&[]).stop();
    let mut answered = 0;
    for (point, syncs, survives) in [
        ("beforeSyncDataPages", 0, true),
        ("beforeSyncDataPages", 5, true),
        ("beforeSyncMetaPage", 0, false),
        ("beforeSyncMetaPage", 5, true),
        ("beforeSyncMetaPage", 9, false),
    ] {
        let counts = Arc::new(Counts { sent: AtomicU64::new(answered), answered: AtomicU64::new(answered) });
        let mut member = place.spawn_command(failing(point, syncs));
        // A member whose first sync fails may end before it is ready.
        if member.wait_ready().is_ok() {
            let reader = tokio::spawn(read(member.client().await, counts.clone()));
            let writer = tokio::spawn(write(member.client().await, counts.clone()));
            assert_loud(&member.wait_end());
            end(reader).await;
            end(writer).await;
        } else {
            assert_loud(&member.wait_end());
        }
        answered = counts.answered.load(SeqCst);
        let sent = counts.sent.load(SeqCst);
        if !survives {
            lose_newest_meta(&place);
        }

        let member = place.start(&[]);
        let found = value(&member.client().await).await.expect("get");
        assert!(found == answered || found == sent, "{point} {syncs}: {found} for {answered}..={sent}");
        let kvs = member.client().await.get("k").await.expect("get").kvs;
        // A member whose first sync fails may end before anything was written.
        let versions = kvs.first().map_or(0, |kv| kv.version as u64);
        assert_eq!(versions, found, "{point} {syncs}: written twice, or not at all");
        answered = found;
        member.stop();
    }
}

/// A playground ends with its member, because an API server without its store is of no use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_member_within_a_playground() {
    if !has_failpoints() {
        return;
    }
    let dir = tempdir();
    let ports_file = dir.path().join("ports");
    let mut command = failing("walBeforeSync", 60);
    command.args(["playground", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir.path().join("data"));
    command.arg("--ports-file").arg(&ports_file);
    let mut playground = Process::start(command, &dir.path().join("log"));
    let ports = playground.wait_ports(&ports_file);
    let store = ports["client"][0].as_str().expect("a URL");
    let options = ConnectOptions::new().request_timeout(wait_max());
    let client = Client::connect([store], options).await.expect("a client");
    let writer = tokio::spawn(write(client, Arc::default()));
    let ended = playground.wait_end();
    end(writer).await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.log);
    assert!(ended.log.contains("lockgate: the embedded member has stopped: "), "{}", ended.log);
    assert!(ended.log.contains(ERROR), "{}", ended.log);
}

/// The number that was sent last, and the one that was answered last.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    answered: AtomicU64,
}

/// Puts rising numbers until one is not answered.
async fn write(client: Client, counts: Arc<Counts>) {
    for number in counts.answered.load(SeqCst) + 1.. {
        counts.sent.store(number, SeqCst);
        if client.put(Put::new("k", number.to_string())).await.is_err() {
            return;
        }
        counts.answered.store(number, SeqCst);
    }
}

/// Reads until the member has ended: never less than was answered before the read, nor than was read before.
async fn read(client: Client, counts: Arc<Counts>) {
    let mut least = counts.answered.load(SeqCst);
    while let Some(found) = value(&client).await {
        assert!(found >= least, "{found} after {least}");
        least = found.max(counts.answered.load(SeqCst));
    }
}

/// Ends a task whose member has ended. Panics if the task has panicked.
async fn end(task: JoinHandle<()>) {
    task.abort();
    match finish("the task ends", task).await {
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        _ => {}
    }
}

/// The number in the key; 0 if it is not there.
async fn value(client: &Client) -> Option<u64> {
    let found = client.get("k").await.ok()?;
    let text = found.kvs.first().map(|kv| String::from_utf8_lossy(&kv.value).into_owned());
    Some(text.map_or(0, |text| text.parse().expect("a number")))
}

/// Removes the meta page that could not be synced, as a power failure would.
fn lose_newest_meta(place: &Place) {
    const PAGE: usize = 4096;
    /// The offset of the transaction in a meta page, which begins with a header of 16 bytes.
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
