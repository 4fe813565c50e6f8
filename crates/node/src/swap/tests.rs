//! Swaps on plain files: whatever is cut off, a dir is the old one or the new one.

use std::collections::BTreeMap;

use harness::TempDir;

use super::*;

/// Where the log is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Log {
    Inside,
    Apart,
    Linked,
}

struct Case {
    temp: TempDir,
    dir: DataDir,
}

fn fill(dir: &DataDir, word: &str) {
    fs::create_dir_all(dir.snap()).unwrap();
    fs::create_dir_all(dir.wal()).unwrap();
    fs::write(dir.db(), word).unwrap();
    // The same names in both, and names that only one has.
    fs::write(dir.snap().join("0-1.snap"), word).unwrap();
    fs::write(dir.snap().join(format!("{word}.snap")), word).unwrap();
    fs::write(dir.wal().join("0-0.wal"), word).unwrap();
    fs::write(dir.wal().join(format!("{word}.wal")), word).unwrap();
}

impl Case {
    fn new(log: Log) -> Case {
        let temp = harness::tempdir();
        let (root, elsewhere) = (temp.path().join("data"), temp.path().join("log"));
        let dir = DataDir::new(&root, (log == Log::Apart).then(|| elsewhere.clone()));
        if log == Log::Linked {
            fs::create_dir_all(dir.member()).unwrap();
            fs::create_dir_all(&elsewhere).unwrap();
            std::os::unix::fs::symlink(&elsewhere, dir.member().join("wal")).unwrap();
        }
        fill(&dir, "old");
        Case { temp, dir }
    }

    fn staged(&self) -> Staging {
        assert_eq!(recover(&self.dir).unwrap(), Recovered::Nothing);
        let staging = Staging::begin(&self.dir).unwrap();
        fill(&staging.new_dir(), "new");
        staging
    }

    /// Every file with its contents, by its path.
    fn files(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut dirs = vec![self.temp.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    dirs.push(entry.path());
                } else if entry.file_type().unwrap().is_file() {
                    let name = entry.path().strip_prefix(self.temp.path()).unwrap().display().to_string();
                    found.insert(name, fs::read_to_string(entry.path()).unwrap());
                }
            }
        }
        found
    }

    /// As etcd looks for a log.
    fn has_log(&self) -> bool {
        let mut entries = fs::read_dir(self.dir.wal()).unwrap().map(Result::unwrap);
        entries.any(|entry| entry.path().extension().is_some_and(|extension| extension == "wal"))
    }

    fn assert_is(&self, word: &str) {
        let files = self.files();
        assert_eq!(files.len(), 5, "{files:#?}");
        assert!(files.values().all(|contents| contents == word), "{files:#?}");
        assert_eq!(fs::read_to_string(self.dir.db()).unwrap(), word);
        assert_eq!(fs::read_to_string(self.dir.wal().join("0-0.wal")).unwrap(), word);
        assert_eq!(recover(&self.dir).unwrap(), Recovered::Nothing);
    }
}

const LOGS: [Log; 3] = [Log::Inside, Log::Apart, Log::Linked];

#[test]
fn a_commit_leaves_the_new_files_alone() {
    for log in LOGS {
        let case = Case::new(log);
        case.staged().commit().unwrap();
        case.assert_is("new");
    }
}

#[test]
fn without_a_commit_nothing_has_changed() {
    for log in LOGS {
        let case = Case::new(log);
        drop(case.staged());
        case.assert_is("old");
    }
}

/// Writes the journal and does so many steps of the swap. Returns false if there are no more.
pub(crate) fn swap_only(dir: &DataDir, staging: &Staging, steps: usize) -> bool {
    Journal { wal: staging.wal_apart.clone() }.write(&staging.root).unwrap();
    journal::finish_only(dir, &staging.root, steps).unwrap()
}

/// As a process leaves it that is killed.
pub(crate) fn forget(staging: Staging) {
    staging._lock.0.unlock().unwrap();
    std::mem::forget(staging);
}

#[test]
fn what_a_killed_process_left_is_undone_before_the_journal() {
    for log in LOGS {
        let case = Case::new(log);
        forget(case.staged());
        assert_eq!(recover(&case.dir).unwrap(), Recovered::Cleared);
        case.assert_is("old");
    }
}

#[test]
fn after_the_journal_it_is_finished_wherever_it_was_cut_off() {
    for log in LOGS {
        for steps in 0.. {
            let case = Case::new(log);
            let staging = case.staged();
            let more = swap_only(&case.dir, &staging, steps);
            // Some of the files have moved, or none, or all: the database is one of the two, or out of sight.
            let seen = fs::read_to_string(case.dir.db()).ok();
            let expected = if steps == 0 { Some("old") } else { (steps >= 6).then_some("new") };
            assert_eq!(seen.as_deref(), expected, "after {steps} steps with the log {log:?}");
            assert!(case.has_log(), "after {steps} steps with the log {log:?}: no log would begin a new cluster");
            forget(staging);
            let recovered = recover(&case.dir).unwrap();
            assert_eq!(recovered, if more { Recovered::Finished } else { Recovered::Cleared });
            case.assert_is("new");
            if !more {
                break;
            }
        }
    }
}

#[test]
fn a_running_migration_is_left_alone() {
    let case = Case::new(Log::Inside);
    let staging = case.staged();
    assert!(matches!(recover(&case.dir), Err(SwapError::Running { .. })));
    assert!(matches!(Staging::begin(&case.dir), Err(SwapError::Running { .. })));
    staging.commit().unwrap();
    case.assert_is("new");
}

#[test]
fn a_database_that_someone_made_meanwhile_is_not_overwritten() {
    let case = Case::new(Log::Apart);
    let staging = case.staged();
    swap_only(&case.dir, &staging, 3);
    fs::write(case.dir.db(), "foreign").unwrap();
    forget(staging);
    assert!(matches!(recover(&case.dir), Err(SwapError::Foreign { .. })));
    fs::remove_file(case.dir.db()).unwrap();
    assert_eq!(recover(&case.dir).unwrap(), Recovered::Finished);
    case.assert_is("new");
}

#[test]
fn a_member_that_is_a_link_is_refused() {
    let case = Case::new(Log::Inside);
    let moved = case.temp.path().join("elsewhere");
    fs::rename(case.dir.member(), &moved).unwrap();
    std::os::unix::fs::symlink(&moved, case.dir.member()).unwrap();
    assert!(matches!(Staging::begin(&case.dir), Err(SwapError::NotReplaceable { .. })));
}

#[test]
fn files_of_others_in_a_log_directory_stay_there() {
    for log in [Log::Apart, Log::Linked] {
        let case = Case::new(log);
        let (notes, lost) = (case.dir.wal().join("notes.txt"), case.dir.wal().join("lost+found"));
        fs::write(&notes, "theirs").unwrap();
        fs::create_dir(&lost).unwrap();
        case.staged().commit().unwrap();
        assert_eq!(fs::read_to_string(&notes).unwrap(), "theirs");
        assert!(lost.is_dir());
        fs::remove_file(&notes).unwrap();
        case.assert_is("new");
    }
}

#[test]
fn a_log_that_cannot_be_moved_is_refused_before_anything_moves() {
    let case = Case::new(Log::Apart);
    fs::create_dir(case.dir.wal().join("1-1.wal")).unwrap();
    assert!(matches!(Staging::begin(&case.dir), Err(SwapError::NotMovable { .. })));
    case.assert_is("old");
}
