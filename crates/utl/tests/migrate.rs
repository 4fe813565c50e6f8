//! `migrate`, `version --data-dir` and `schema` on data dirs of Lockgate and on ones made without a server.

use std::{ffi::OsStr, fs, path::Path};

use harness::{Output, tempdir};
use node::DataDir;
use prost::Message;
use proto::{
    Version,
    etcdserverpb::{
        AuthEnableRequest, Compare, IncrementRequest, InternalAuthenticateRequest, InternalRaftRequest, TxnRequest,
    },
};
use storage::{Backend, Options, schema};
use wal::{Wal, snapfile};

use crate::support::{self, Member, made, utl};

fn migrate(dir: &DataDir, target: &str, extra: &[&str]) -> Output {
    let mut args = vec!["migrate".to_owned(), "--target-version".into(), target.into()];
    args.extend(dir.words().split(' ').map(ToOwned::to_owned));
    args.extend(extra.iter().map(|word| (*word).to_owned()));
    utl(args)
}

fn version(dir: &DataDir) -> serde_json::Value {
    let words = dir.words();
    let args = ["version", "-w", "json"].into_iter().chain(words.split(' '));
    serde_json::from_str(&utl(args).ok()).unwrap()
}

fn hash(dir: &DataDir) -> String {
    utl([OsStr::new("hashkv"), OsStr::new("--data-dir"), dir.root().as_os_str()]).ok()
}

fn v(minor: u16) -> Option<Version> {
    Some(Version::new(3, minor))
}

/// A stopped Lockgate with a history, at 3.8 and with a cluster feature on.
fn filled(root: &Path) -> DataDir {
    let member = Member::lockgate(root, &["--cluster-feature-gates", "AtomicIncrement=true"]);
    member.fill();
    member.wait_versioned();
    member.wait_feature("AtomicIncrement");
    member.stop();
    DataDir::new(root, None)
}

#[test]
fn down_and_up_again_keeps_every_key_and_prunes_the_gate() {
    let temp = tempdir();
    let dir = filled(&temp.path().join("data"));
    let (before, at) = (hash(&dir), version(&dir));
    assert_eq!((&at["atVersion"], &at["needs"]), (&"3.8".into(), &"3.8".into()));
    let untouched = made::bytes(dir.root());
    // Neither a plan nor a refusal changes anything.
    let plan = migrate(&dir, "3.5", &["--dry-run"]).ok();
    for line in
        ["from 3.8 to 3.5", "3.8 to 3.7", "cluster/featureGate removed", "cluster feature AtomicIncrement, which is on"]
    {
        assert!(plan.contains(line), "no {line:?} in:\n{plan}");
    }
    assert!(plan.contains(&format!("hashkv {} at revision", before.split(',').next().unwrap())), "{plan}");
    let refused = migrate(&dir, "3.5", &[]).error();
    assert!(refused.contains("going down needs a confirmation") && refused.contains("-y"), "{refused}");
    assert_eq!(made::bytes(dir.root()), untouched);
    for target in ["3.5", "3.7", "3.6", "3.8", "3.7"] {
        migrate(&dir, target, &["-y"]).ok();
        assert_eq!(hash(&dir), before, "at {target}");
        let expected: Version = target.parse().unwrap();
        let storage = (expected >= Version::new(3, 6)).then_some(expected);
        assert_eq!(made::versions(&dir), (storage, Some(expected)));
        assert_eq!(snapfile::list(&dir.snap()).unwrap().len(), usize::from(target != "3.8"), "at {target}");
        let again = migrate(&dir, target, &[]);
        assert!(again.stderr.contains("storage version up-to-date"), "{}", again.stderr);
    }
    let file = Backend::open_read_only(&dir.db(), None).unwrap();
    assert_eq!(schema::gate::load(&file.view()).unwrap(), schema::gate::Stored::default());
    drop(file);
    assert_eq!(fs::read_dir(dir.root()).unwrap().count(), 1, "nothing but `member` is left");
    let member = Member::lockgate(dir.root(), &[]);
    assert_eq!(member.hash_kv(0), before);
}

#[test]
fn the_log_may_be_in_another_directory() {
    let temp = tempdir();
    let wal = temp.path().join("log");
    let dir = made::dir(&temp.path().join("data"), Some(wal.clone()), &made::log_of_3_5(), 6);
    migrate(&dir, "3.7", &[]).ok();
    assert_eq!(made::versions(&dir), (v(7), v(7)));
    assert_eq!(support::names(&wal), ["0000000000000000-0000000000000000.wal"]);
    assert!(!dir.member().join("wal").exists());
    // Without the flag the tool does not find the log, and says so.
    let error = utl(["version", "--data-dir", dir.root().to_str().unwrap()]).error();
    assert!(error.contains("--wal-dir"), "{error}");
}

#[test]
fn committed_entries_are_applied_and_leave_the_log() {
    let temp = tempdir();
    let dir = made::dir(&temp.path().join("data"), None, &made::log_of_3_5(), 5);
    let at = version(&dir);
    assert_eq!(at["v2Requests"][0]["index"], 3);
    assert_eq!(at["v2Requests"][1]["what"], r#"PUT "/0/version""#);
    let refused = at["starts"][2]["refused"].as_str().unwrap();
    assert!(refused.contains("v2 API"), "{refused}");
    let plan = migrate(&dir, "3.7", &[]).ok();
    assert!(plan.contains("committed entries 1 to 5 are applied"), "{plan}");
    assert!(plan.contains("entries 6 to 6, not known to be committed, are kept"), "{plan}");
    let file = Backend::open_read_only(&dir.db(), None).unwrap();
    assert_eq!(schema::meta::consistent(&file.view()).unwrap(), (5, 1));
    let member = &schema::member::all(&file.view()).unwrap()[0];
    assert_eq!((member.id, member.name.as_str()), (made::MEMBER, "m1"));
    assert_eq!(made::versions(&dir), (v(7), v(7)));
    let snapshots = Wal::valid_snapshots(&dir.wal()).unwrap();
    assert_eq!(snapshots.last().unwrap().index(), 5);
    let log = Wal::read(&dir.wal(), snapshots.last().unwrap()).unwrap();
    assert_eq!(log.entries, [made::put(6, "b")], "kept as it was");
    assert_eq!((log.hard_state.commit(), log.hard_state.vote()), (5, made::MEMBER));
    let snap = snapfile::read(&snapfile::list(&dir.snap()).unwrap()[0]).unwrap();
    let store = String::from_utf8(snap.data.unwrap().to_vec()).unwrap();
    assert!(store.contains("/0/members/7/attributes") && store.contains("3.7.0"), "{store}");
}

/// The error of a migration to `target` with an entry that is not known to be committed.
fn refused_for(entry: proto::raftpb::Entry, target: &str) -> String {
    let temp = tempdir();
    let dir = made::dir(&temp.path().join("data"), None, &made::log_of_3_5(), 6);
    migrate(&dir, "3.8", &[]).ok();
    made::append(&dir, &[made::put(0, "c"), entry]);
    let before = made::bytes(temp.path());
    let error = migrate(&dir, target, &["-y"]).error();
    assert_eq!(made::bytes(temp.path()), before);
    assert!(error.contains("entry 8 ") && error.contains("a clean stop syncs the commit index"), "{error}");
    let forced = migrate(&dir, target, &["-y", "--force"]);
    assert!(forced.stderr.contains("WARNING: --force skips a check: entry 8"), "{}", forced.stderr);
    forced.ok();
    let at = Wal::valid_snapshots(&dir.wal()).unwrap().pop().unwrap();
    assert_eq!(Wal::read(&dir.wal(), &at).unwrap().entries.len(), 2, "still kept");
    error
}

#[test]
fn newer_entries_that_may_not_be_committed_are_refused_by_index() {
    let increment = IncrementRequest { key: "n".into(), ..Default::default() };
    let increment = InternalRaftRequest { increment: Some(increment), ..Default::default() };
    let error = refused_for(made::request(0, increment), "3.7");
    assert!(error.contains("needs 3.8"), "{error}");
}

#[test]
fn users_in_entries_that_may_not_be_committed_are_kept() {
    let temp = tempdir();
    let dir = made::dir(&temp.path().join("data"), None, &made::log_of_3_5(), 6);
    migrate(&dir, "3.7", &[]).ok();
    let enable = InternalRaftRequest { auth_enable: Some(AuthEnableRequest::default()), ..Default::default() };
    made::append(&dir, &[made::put(0, "c"), made::request(0, enable)]);
    for target in ["3.8", "3.6"] {
        migrate(&dir, target, &["-y"]).ok();
        let found = version(&dir);
        assert_eq!((&found["commitIndex"], &found["lastIndex"]), (&6.into(), &8.into()), "{target}: {found}");
        assert!(found["starts"][3]["refused"].is_null() || target == "3.6", "{found}");
    }
}

/// etcd does not look into repeated fields, and so ignores unknown fields there.
#[test]
fn unknown_fields_inside_a_transaction_count() {
    let mut compare = Compare { key: "k".into(), ..Default::default() }.encode_to_vec();
    compare.extend([0xba, 0x3e, 1, b'x']); // Field 999.
    let mut txn = TxnRequest::default().encode_to_vec();
    txn.extend([0x0a, compare.len() as u8]);
    txn.extend(&compare);
    // header{ID: 8}, then txn.
    let mut data = vec![0xa2, 0x06, 2, 8, 8, 0x32, txn.len() as u8];
    data.extend(&txn);
    let error = refused_for(made::raw(0, data), "3.7");
    assert!(error.contains("txn.compare.999"), "{error}");
}

#[test]
fn entries_that_only_etcd_can_apply_are_refused_by_index_and_nothing_changes() {
    let enable = InternalRaftRequest { auth_enable: Some(AuthEnableRequest::default()), ..Default::default() };
    let login =
        InternalRaftRequest { authenticate: Some(InternalAuthenticateRequest::default()), ..Default::default() };
    for (entry, what) in [
        // Apply refuses it, as there is no root; a refusal is a result and does not stop a migration.
        (made::request(7, enable), None),
        (made::v2_put(7, "/1/key", "x"), Some(r#"v2 API (PUT "/1/key")"#)),
        (made::request(7, login), None),
    ] {
        let temp = tempdir();
        let log = [made::log_of_3_5(), vec![entry]].concat();
        let dir = made::dir(&temp.path().join("data"), None, &log, 7);
        let before = made::bytes(temp.path());
        let ended = migrate(&dir, "3.6", &[]);
        let Some(what) = what else {
            ended.ok();
            continue;
        };
        let error = ended.error();
        assert!(error.contains("entry 7 ") && error.contains(what), "{error}");
        assert!(error.contains("start the etcd that wrote it once"), "{error}");
        assert_eq!(made::bytes(temp.path()), before);
    }
}

#[test]
fn authentication_is_carried_as_data() {
    let temp = tempdir();
    let dir = made::dir(&temp.path().join("data"), None, &made::log_of_3_5(), 6);
    migrate(&dir, "3.6", &[]).ok();
    let backend = Backend::open(&dir.db(), Options::default()).unwrap();
    let mut batch = backend.write();
    schema::auth::put_enabled(&mut batch, true);
    batch.put(storage::Bucket::AuthUsers, "root", "\u{a}\u{4}root");
    batch.commit().unwrap();
    backend.close().unwrap();
    drop(backend);
    migrate(&dir, "3.8", &[]).ok();
    let found = version(&dir);
    assert_eq!((&found["authentication"], &found["starts"][3]["refused"]), (&true.into(), &serde_json::Value::Null));
    migrate(&dir, "3.5", &["-y"]).ok();
    let file = Backend::open_read_only(&dir.db(), None).unwrap();
    assert!(schema::auth::enabled(&file.view()));
    assert_eq!(schema::auth::users(&file.view()).unwrap()[0].name, "root");
}

#[test]
fn a_dir_in_use_is_not_touched() {
    let temp = tempdir();
    let dir = made::dir(&temp.path().join("data"), None, &made::log_of_3_5(), 6);
    let backend = Backend::open(&dir.db(), Options::default()).unwrap();
    let error = migrate(&dir, "3.7", &["--timeout", "200ms"]).error();
    assert!(error.contains("locked by another process"), "{error}");
    drop(backend);
    migrate(&dir, "3.7", &[]).ok();
}

#[test]
fn a_downgrade_job_ends_with_the_migration() {
    let temp = tempdir();
    let dir = made::dir(&temp.path().join("data"), None, &made::log_of_3_5(), 6);
    migrate(&dir, "3.8", &[]).ok();
    let backend = Backend::open(&dir.db(), Options::default()).unwrap();
    let mut batch = backend.write();
    let job = schema::cluster::Downgrade { target_version: "3.7.0".into(), enabled: true };
    schema::cluster::put_downgrade(&mut batch, &job);
    batch.commit().unwrap();
    backend.close().unwrap();
    drop(backend);
    assert_eq!(version(&dir)["downgrade"], "3.7.0");
    let plan = migrate(&dir, "3.7", &["-y"]).ok();
    assert!(plan.contains("the downgrade job to 3.7.0 ends"), "{plan}");
    assert_eq!(version(&dir)["downgrade"], serde_json::Value::Null);
}

#[test]
fn dirs_of_all_members_are_compared() {
    let temp = tempdir();
    let dirs: Vec<_> = (1..=3).map(|n| temp.path().join(format!("m{n}"))).collect();
    made::dir(&dirs[0], None, &made::log_of_3_5(), 6);
    migrate(&DataDir::new(&dirs[0], None), "3.7", &[]).ok();
    made::copy(&dirs[0], &dirs[1]);
    made::copy(&dirs[0], &dirs[2]);
    let compare =
        || utl([OsStr::new("migrate"), OsStr::new("--compare")].into_iter().chain(dirs.iter().map(|d| d.as_os_str())));
    assert!(compare().ok().contains("all are equal"));
    migrate(&DataDir::new(&dirs[2], None), "3.6", &["-y"]).ok();
    let ended = compare();
    assert_eq!(ended.code, Some(1));
    let line = format!("DIFFERENT: {}: version is 3.7, in {} it is 3.6", dirs[0].display(), dirs[2].display());
    assert!(ended.stdout.contains(&line), "{}", ended.stdout);
}

#[test]
fn keys_of_the_v2_api_are_not_lost_silently() {
    let temp = tempdir();
    let dir = made::dir(&temp.path().join("data"), None, &made::log_of_3_5(), 6);
    migrate(&dir, "3.6", &[]).ok();
    migrate(&dir, "3.5", &["-y"]).ok();
    let path = snapfile::list(&dir.snap()).unwrap().remove(0);
    let mut snap = snapfile::read(&path).unwrap();
    let text = String::from_utf8(snap.data.unwrap().to_vec()).unwrap();
    let mut store: serde_json::Value = serde_json::from_str(&text).unwrap();
    store["Root"]["Children"]["1"]["Children"]["k"] = serde_json::json!({ "Path": "/1/k", "Value": "x" });
    snap.data = Some(store.to_string().into());
    snapfile::save(&dir.snap(), &snap).unwrap();
    let error = migrate(&dir, "3.6", &[]).error();
    assert!(error.contains("keys of the v2 API would be lost, such as /1/k"), "{error}");
    migrate(&dir, "3.6", &["--force"]).ok();
}

#[test]
fn invalid_arguments_get_the_messages_of_etcdutl() {
    let temp = tempdir();
    let dir = made::dir(&temp.path().join("data"), None, &made::log_of_3_5(), 6);
    let error = |target| migrate(&dir, target, &[]).error();
    assert!(error("3").contains(r#"wrong target version format, expected "X.Y", got "3""#));
    assert!(error("3.4").contains(r#"target version "3.4" not supported. Minimal "3.5""#));
    assert!(error("3.9").contains(r#"target version "3.9" not supported. Maximal "3.8""#));
    let missing = utl(["migrate"]).error();
    assert!(missing.contains(r#"required flag(s) "data-dir", "target-version" not set"#), "{missing}");
}

#[test]
fn the_schema_is_printed_as_of_a_version() {
    let all = utl(["schema"]).ok();
    assert!(all.contains("cluster/featureGate\n") && all.contains("meta/storageVersion"), "{all}");
    let old: serde_json::Value = serde_json::from_str(&utl(["schema", "--version", "3.5", "-w", "json"]).ok()).unwrap();
    let rows = old.as_array().unwrap();
    assert!(rows.iter().all(|row| row["key"] != "storageVersion" && row["key"] != "featureGate"));
    let member = rows.iter().find(|row| row["bucket"] == "members").unwrap();
    assert_eq!(member["parts"][2], serde_json::json!({ "name": "isLearner", "since": "3.4" }));
    assert!(utl(["schema", "-w", "table"]).ok().contains("RemainingTTL"));
}

#[test]
fn a_dir_that_is_too_old_is_refused_with_the_command_that_helps() {
    let temp = tempdir();
    let dir = made::dir(&temp.path().join("data"), None, &made::log_of_3_5(), 6);
    migrate(&dir, "3.6", &[]).ok();
    let config = support::member::config(dir.root(), &[]);
    let Err(error) = support::member::block(server::Server::start(config)) else { panic!("it started") };
    let error = format!("{error:#?} {error}");
    let command = format!("lockgateutl migrate --data-dir {} --target-version 3.7", dir.root().display());
    assert!(error.contains(&command), "{error}");
}
