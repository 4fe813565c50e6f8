//! Starts next to a migration, and after a crash on the page cache.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

use harness::TempDir;
use memdisk::MemDisk;
use wal::{Disk, DiskFile, OpenMode, OsDisk};

use super::*;
use crate::swap::{Staging, tests as swap_tests};

type Hook = Box<dyn FnOnce() + Send>;

/// The operating system's disk with something that happens once, between the look for a database and its opening.
struct HookDisk {
    hook: Mutex<Option<Hook>>,
}

impl std::fmt::Debug for HookDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HookDisk")
    }
}

impl HookDisk {
    fn hook(&self) -> MutexGuard<'_, Option<Hook>> {
        self.hook.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for HookDisk {
    fn list(&self, dir: &Path) -> std::io::Result<Vec<String>> {
        let names = OsDisk.list(dir);
        let hook = self.hook().take();
        hook.into_iter().for_each(|hook| hook());
        names
    }

    fn create_dir_all(&self, dir: &Path) -> std::io::Result<()> {
        OsDisk.create_dir_all(dir)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> std::io::Result<Box<dyn DiskFile>> {
        OsDisk.open(path, mode)
    }

    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        OsDisk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> std::io::Result<()> {
        OsDisk.remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> std::io::Result<()> {
        OsDisk.sync_dir(dir)
    }
}

fn options(dir: &DataDir, log_disk: Arc<dyn Disk>) -> BootstrapOptions {
    let local = MemberId(7);
    let peer_urls = vec!["http://127.0.0.1:2380".to_owned()];
    let members = BTreeMap::from([(local, Member { id: local, peer_urls, name: "m".into(), ..Member::default() })]);
    BootstrapOptions {
        data_dir: dir.clone(),
        name: "m".into(),
        identity: Some(Identity::Founder(Founding { cluster_id: ClusterId(9), local, members })),
        force_new_cluster: false,
        learners_max: 1,
        binary_version: Version::new(3, 8),
        backend: storage::Options { map_bytes: Some(64 << 20), ..storage::Options::default() },
        wal: wal::Options { segment_bytes: 64 << 10, no_sync: false },
        log_disk,
        check_features: Arc::new(|_| Ok(())),
    }
}

/// A member with its log in a directory of its own, and a migration of it that is staged but not committed.
fn staged() -> (TempDir, DataDir, Staging) {
    let temp = harness::tempdir();
    let dir = DataDir::new(temp.path().join("data"), Some(temp.path().join("log")));
    drop(bootstrap(options(&dir, Arc::new(OsDisk))).unwrap());
    let staging = Staging::begin(&dir).unwrap();
    let new = staging.new_dir();
    fs::create_dir_all(new.wal()).unwrap();
    fs::copy(dir.db(), new.db()).unwrap();
    for entry in fs::read_dir(dir.wal()).unwrap().map(Result::unwrap).filter(|e| e.file_type().unwrap().is_file()) {
        fs::copy(entry.path(), new.wal().join(entry.file_name())).unwrap();
    }
    (temp, dir, staging)
}

/// Starts the member; after it has found no migration, something happens to one. Checks that the start serves the new
/// database.
fn start_during(happens: impl FnOnce(&DataDir, Staging) + Send + 'static) {
    let (temp, dir, staging) = staged();
    let new_database = fs::metadata(staging.new_dir().db()).unwrap().ino();
    let (root, aside) = (dir.root().join(".migrate"), temp.path().join("aside"));
    fs::rename(&root, &aside).unwrap();
    let at = dir.clone();
    let hook = Box::new(move || {
        fs::rename(&aside, &root).unwrap();
        happens(&at, staging);
    });
    let disk = HookDisk { hook: Mutex::new(Some(hook)) };
    let booted = bootstrap(options(&dir, Arc::new(disk))).unwrap();
    assert_eq!(fs::metadata(dir.db()).unwrap().ino(), new_database);
    assert!(!swap::is_pending(&dir).unwrap());
    assert_eq!(booted.entries.len(), 1);
}

#[test]
fn a_start_makes_no_database_while_a_migration_swaps_files() {
    for steps in 0.. {
        let (send, more) = std::sync::mpsc::channel();
        start_during(move |dir, staging| {
            send.send(swap_tests::swap_only(dir, &staging, steps)).unwrap();
            swap_tests::forget(staging);
        });
        if !more.recv().unwrap() {
            break;
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the migration is another process, for which a thread stands")]
fn a_start_waits_for_a_migration_that_is_under_way() {
    start_during(|dir, staging| {
        swap_tests::swap_only(dir, &staging, 1);
        thread::spawn(move || swap_tests::forget(staging));
    });
}

/// The snapshot record of the log is in the page cache alone when the received database is put in place.
#[test]
fn a_received_database_takes_its_place_after_the_log_is_durable() {
    let temp = harness::tempdir();
    let dir = DataDir::new(temp.path(), None);
    let disk = MemDisk::default();
    drop(bootstrap(options(&dir, Arc::new(disk.clone()))).unwrap());
    let begin = walpb::Snapshot::default();
    let (mut log, all) =
        Wal::open_on(Arc::new(disk.clone()), &dir.wal(), &begin, options(&dir, Arc::new(OsDisk)).wal).unwrap();
    let state = raftpb::HardState { term: Some(2), commit: Some(9), ..all.hard_state };
    let entry = |index| raftpb::Entry { term: Some(2), index: Some(index), ..raftpb::Entry::default() };
    log.save(Some(&state), &(2..=9).map(entry).collect::<Vec<_>>()).unwrap();
    disk.power().cut_after(2);
    log.save_snapshot(&snapshot_record(9, 2, raftpb::ConfState { voters: vec![7], ..Default::default() })).unwrap_err();
    drop(log);
    disk.power().restore();
    fs::write(dir.received(9), b"no database").unwrap();
    let refused = bootstrap(options(&dir, Arc::new(disk.clone()))).map(drop);
    assert!(matches!(refused, Err(StartError::Core(_))), "{refused:?}");
    disk.crash(|| false);
    let snapshots = Wal::valid_snapshots_on(&disk, &dir.wal()).unwrap();
    assert_eq!(snapshots.last().map(walpb::Snapshot::index), Some(9));
}
