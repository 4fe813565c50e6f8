//! Runs a fixed series of requests through the public `etcd-client` crate and prints one JSON line per step. Answers are
//! shown field by field as the crate prints them, with ids left out, so that two servers can be compared.

use std::{fmt::Debug, time::Duration};

use etcd_client::{
    AlarmAction, AlarmType, Client, CompactionOptions, Compare, CompareOp, ConnectOptions, DeleteOptions, Error,
    GetOptions, LeaseGrantOptions, LeaseTimeToLiveOptions, PutOptions, SortOrder, SortTarget, Txn, TxnOp, WatchFilterType,
    WatchOptions, WatchStream,
};
use serde_json::json;

type Result<T> = std::result::Result<T, Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let endpoint = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2379".to_owned());
    let options = ConnectOptions::new().with_timeout(Duration::from_secs(20));
    let mut client = Client::connect([endpoint], Some(options)).await?;
    kv(&mut client).await;
    ranges(&mut client).await;
    txns(&mut client).await;
    watches(&mut client).await?;
    leases(&mut client).await;
    compaction(&mut client).await;
    maintenance(&mut client).await;
    Ok(())
}

fn step<T: Debug>(name: &str, result: Result<T>) {
    let line = match result {
        Ok(answer) => json!({"step": name, "answer": without_ids(&format!("{answer:?}"))}),
        Err(Error::GRpcStatus(status)) => {
            json!({"step": name, "error": {"code": format!("{:?}", status.code()), "message": status.message()}})
        }
        Err(error) => json!({"step": name, "error": {"code": "client", "message": error.to_string()}}),
    };
    println!("{line}");
}

/// What servers choose, and what depends on the clock or on files.
fn without_ids(text: &str) -> String {
    const NAMES: [&str; 11] = [
        "cluster_id: ",
        "member_id: ",
        " ttl: ",
        "leader: ",
        "db_size: ",
        "db_size_in_use: ",
        "raft_index: ",
        "raft_applied_index: ",
        "version: \"",
        "storage_version: \"",
        "urls: ",
    ];
    let mut out = text.to_owned();
    for name in NAMES {
        let mut done = 0;
        while let Some(at) = out[done..].find(name).map(|at| done + at + name.len()) {
            let end = out[at..].find([',', '}', ')']).map_or(out.len(), |end| at + end);
            out.replace_range(at..end, "…");
            done = at;
        }
    }
    out
}

async fn kv(c: &mut Client) {
    step("get from the empty store", c.get("a", None).await);
    step("put", c.put("a", "1", None).await);
    step("put with prev_kv", c.put("a", "2", Some(PutOptions::new().with_prev_key())).await);
    step("put bytes", c.put(vec![0, 255], vec![1, 0, 254], None).await);
    step("put empty value", c.put("empty", "", None).await);
    step("get", c.get("a", None).await);
    step("get bytes", c.get(vec![0, 255], None).await);
    step("get at a revision", c.get("a", Some(GetOptions::new().with_revision(2))).await);
    step("get in the future", c.get("a", Some(GetOptions::new().with_revision(99))).await);
    step("put without key", c.put("", "1", None).await);
    step("get without key", c.get("", None).await);
    step("delete without key", c.delete("", None).await);
    step("put with unknown lease", c.put("a", "1", Some(PutOptions::new().with_lease(99))).await);
    step("ignore_value", c.put("a", "", Some(PutOptions::new().with_ignore_value().with_prev_key())).await);
    step("ignore_value with value", c.put("a", "1", Some(PutOptions::new().with_ignore_value())).await);
    step("ignore_value of missing", c.put("none", "", Some(PutOptions::new().with_ignore_value())).await);
    step("ignore_lease of missing", c.put("none", "", Some(PutOptions::new().with_ignore_lease())).await);
    step("too large", c.put("a", vec![0; 1_600_000], None).await);
    step("delete", c.delete("empty", Some(DeleteOptions::new().with_prev_key())).await);
    step("delete missing", c.delete("empty", None).await);
}

async fn ranges(c: &mut Client) {
    for (key, value) in [("r/3", "c"), ("r/1", "e"), ("r/5", "a"), ("r/2", "d"), ("r/4", "b"), ("r/1", "f")] {
        step("put for ranges", c.put(key, value, None).await);
    }
    let prefix = || GetOptions::new().with_prefix();
    let all: Vec<(&str, &str, GetOptions)> = vec![
        ("prefix", "r/", prefix()),
        ("range", "r/2", GetOptions::new().with_range("r/4")),
        ("from key", "r/3", GetOptions::new().with_from_key()),
        ("all keys", "", GetOptions::new().with_all_keys()),
        ("keys only", "r/", prefix().with_keys_only()),
        ("count only", "r/", prefix().with_count_only()),
        ("limit", "r/", prefix().with_limit(2)),
        ("serializable", "r/", prefix().with_serializable()),
        ("sort by value", "r/", prefix().with_sort(SortTarget::Value, SortOrder::Descend)),
        ("sort by create", "r/", prefix().with_sort(SortTarget::Create, SortOrder::Ascend)),
        ("sort by mod with limit", "r/", prefix().with_sort(SortTarget::Mod, SortOrder::Descend).with_limit(1)),
        ("sort by version", "r/", prefix().with_sort(SortTarget::Version, SortOrder::Descend)),
        ("min mod", "r/", prefix().with_min_mod_revision(9)),
        ("max mod", "r/", prefix().with_max_mod_revision(9)),
        ("min create", "r/", prefix().with_min_create_revision(9)),
        ("max create", "r/", prefix().with_max_create_revision(9)),
    ];
    for (name, key, options) in all {
        step(name, c.get(key, Some(options)).await);
    }
    step("delete a range", c.delete("r/1", Some(DeleteOptions::new().with_range("r/3").with_prev_key())).await);
    step("delete a prefix", c.delete("r/4", Some(DeleteOptions::new().with_prefix())).await);
}

async fn txns(c: &mut Client) {
    let put = |key: &str| TxnOp::put(key, "t", None);
    let then = |ops: Vec<TxnOp>| Txn::new().and_then(ops);
    step("empty txn", c.txn(Txn::new()).await);
    step("txn", c.txn(then(vec![put("t/1"), TxnOp::get("t/1", None), TxnOp::delete("a", None)])).await);
    let conditions = [
        ("value", Compare::value("t/1", CompareOp::Equal, "t")),
        ("value differs", Compare::value("t/1", CompareOp::NotEqual, "t")),
        ("version", Compare::version("t/1", CompareOp::Greater, 0)),
        ("create", Compare::create_revision("t/1", CompareOp::Less, 5)),
        ("mod", Compare::mod_revision("t/1", CompareOp::Greater, 1)),
        ("lease", Compare::lease("t/1", CompareOp::Equal, 0)),
        ("missing", Compare::create_revision("none", CompareOp::Equal, 0)),
        ("range", Compare::version("r/", CompareOp::Greater, 0).with_prefix()),
        ("empty range", Compare::version("none/", CompareOp::Greater, 7).with_range("none0")),
    ];
    for (name, condition) in conditions {
        let txn = Txn::new().when([condition]).and_then([put("t/then")]).or_else([put("t/else")]);
        step(&format!("condition on {name}"), c.txn(txn).await);
    }
    let nested = TxnOp::txn(then(vec![put("t/in"), TxnOp::txn(then(vec![TxnOp::get("t/in", None)]))]));
    step("nested", c.txn(then(vec![put("t/out"), nested])).await);
    step("same key twice", c.txn(then(vec![put("t/1"), put("t/1")])).await);
    step("put without key", c.txn(then(vec![put("")])).await);
    let many = (0..129).map(|i| put(&format!("many/{i}"))).collect();
    step("too many operations", c.txn(then(many)).await);
}

async fn watches(c: &mut Client) -> Result<()> {
    let mut stream = c.watch("r/", Some(WatchOptions::new().with_prefix().with_start_revision(6))).await?;
    events("watch from the past", &mut stream, 8).await;
    let options = WatchOptions::new().with_prefix().with_start_revision(6).with_prev_key();
    let mut stream = c.watch("r/", Some(options.with_filters([WatchFilterType::NoPut]))).await?;
    events("watch without puts", &mut stream, 2).await;
    let mut stream = c.watch("w", Some(WatchOptions::new().with_watch_id(5).with_prev_key())).await?;
    step("watch created", stream.message().await);
    for value in ["1", "2"] {
        step("put for the watch", c.put("w", value, None).await);
    }
    step("delete for the watch", c.delete("w", None).await);
    events("watch from now", &mut stream, 3).await;
    stream.request_progress().await?;
    step("progress", stream.message().await);
    stream.watch("w2", None).await?;
    step("second watch on the stream", stream.message().await);
    stream.cancel(5).await?;
    step("cancel", stream.message().await);
    Ok(())
}

/// Events one by one: how they are cut into answers is the server's affair.
async fn events(name: &str, stream: &mut WatchStream, count: usize) {
    let mut seen = 0;
    while seen < count {
        let answer = match tokio::time::timeout(Duration::from_secs(10), stream.message()).await {
            Ok(Ok(Some(answer))) => answer,
            Ok(other) => return step(name, other),
            Err(_) => return step(name, Ok("nothing came for 10 seconds")),
        };
        seen += answer.events().len();
        for event in answer.events() {
            step(name, Ok(event));
        }
        if answer.canceled() {
            return step(name, Ok((answer.compact_revision(), answer.cancel_reason())));
        }
    }
}

async fn leases(c: &mut Client) {
    step("grant", c.lease_grant(100, Some(LeaseGrantOptions::new().with_id(5))).await);
    step("grant again", c.lease_grant(100, Some(LeaseGrantOptions::new().with_id(5))).await);
    step("grant for too long", c.lease_grant(9_000_000_001, Some(LeaseGrantOptions::new().with_id(6))).await);
    step("attach", c.put("l/1", "1", Some(PutOptions::new().with_lease(5))).await);
    step("time to live", c.lease_time_to_live(5, Some(LeaseTimeToLiveOptions::new().with_keys())).await);
    step("time to live of unknown", c.lease_time_to_live(6, None).await);
    step("leases", c.leases().await);
    if let Ok((mut keeper, mut stream)) = c.lease_keep_alive(5).await {
        step("keep alive", keeper.keep_alive().await);
        step("kept alive", stream.message().await);
    }
    step("keep alive of unknown", c.lease_keep_alive(6).await.map(|_| "kept"));
    step("get leased", c.get("l/1", None).await);
    step("revoke", c.lease_revoke(5).await);
    step("revoke again", c.lease_revoke(5).await);
    step("key after revoking", c.get("l/1", None).await);
}

async fn compaction(c: &mut Client) {
    step("hash", c.hash_kv(0).await);
    step("hash at a revision", c.hash_kv(7).await);
    step("hash in the future", c.hash_kv(999).await);
    step("compact", c.compact(8, Some(CompactionOptions::new().with_physical())).await);
    step("compact again", c.compact(8, None).await);
    step("compact the future", c.compact(999, None).await);
    step("get compacted", c.get("a", Some(GetOptions::new().with_revision(3))).await);
    step("hash after", c.hash_kv(0).await);
    step("hash compacted", c.hash_kv(3).await);
    match c.watch("r/", Some(WatchOptions::new().with_start_revision(2))).await {
        Ok(mut stream) => events("watch compacted", &mut stream, 1).await,
        Err(error) => step::<()>("watch compacted", Err(error)),
    }
}

async fn maintenance(c: &mut Client) {
    step("status", c.status().await);
    step("alarms", c.alarm(AlarmAction::Get, AlarmType::None, None).await);
    step("defragment", c.defragment().await);
    step("hash of the backend", c.hash().await.map(|hash| hash.hash() != 0));
    step("move leader", c.move_leader(5).await);
    let members = c.member_list().await;
    step("members", members.map(|list| list.members().iter().map(|m| (m.name().to_owned(), m.is_learner())).collect::<Vec<_>>()));
    step("remove unknown member", c.member_remove(5).await);
    step("promote unknown member", c.member_promote(5).await);
    match c.snapshot().await {
        Ok(mut stream) => {
            let mut size = 0;
            while let Ok(Some(piece)) = stream.message().await {
                size += piece.blob().len();
            }
            step("snapshot", Ok((size > 32, size % 512)));
        }
        Err(error) => step::<()>("snapshot", Err(error)),
    }
}
