//! Power cuts, failing disks and killed processes: whole units survive, and every one that was said to be durable.

use crate::common;

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use common::{check_units, eager, manual, open, put_unit, received};
use memdisk::{FileDisk, Survives, crash};
use random::Random;
use storage::{Backend, Failure, Options};

#[test]
fn a_power_cut_at_any_moment_leaves_whole_units() {
    let disk = Arc::new(FileDisk::new(b""));
    let path = Path::new("test");
    let backend = Backend::open_disk(disk.clone(), path, eager()).unwrap();
    let first = disk.op_count();
    // What is durable after so many operations.
    let mut durable = vec![(first, 0)];
    for n in 1..=400 {
        put_unit(&backend, n);
        if n % 9 == 0 {
            backend.commit().unwrap();
            durable.push((disk.op_count(), n));
        }
    }
    backend.close().unwrap();
    let ops = disk.ops();
    let mut rng = Random::new(1);
    for round in 0..150 {
        let cut = first + rng.below((ops.len() - first + 1) as u64) as usize;
        let image = crash(&[], &ops[..cut], Survives::Sectors, &mut rng);
        let least = durable.iter().rev().find(|(at, _)| *at <= cut).map_or(0, |(_, n)| *n);
        let again = Backend::open_disk(Arc::new(FileDisk::new(&image)), path, manual())
            .unwrap_or_else(|e| panic!("round {round}, cut {cut}: {e}"));
        let found = check_units(&again.view());
        assert!(found >= least, "round {round}, cut {cut}: {found} < {least}");
        // And it can be written on.
        put_unit(&again, found + 1);
        again.commit().unwrap();
        assert_eq!(check_units(&again.view()), found + 1);
    }
}

#[test]
fn after_a_failed_commit_nothing_is_said_to_be_durable() {
    for fail_after in 0..6 {
        let disk = Arc::new(FileDisk::new(b""));
        let options = Options { ops_max: 20, batch_limit: 10, ..manual() };
        let backend = Backend::open_disk(disk.clone(), Path::new("test"), options).unwrap();
        put_unit(&backend, 1);
        backend.commit().unwrap();
        let (tell, told) = mpsc::channel();
        backend.on_failure(move |failure| tell.send(failure.to_string()).unwrap());
        disk.fail_after(fail_after);
        // Also beyond the bound at which writers wait: they must not wait for ever.
        let mut n = 1;
        while backend.failed().is_none() {
            n += 1;
            put_unit(&backend, n);
        }
        (n + 1..n + 30).for_each(|n| put_unit(&backend, n));
        assert!(matches!(backend.commit(), Err(Failure::Commit { .. })));
        assert!(told.recv().unwrap().starts_with("failed to commit to test"));
        assert!(backend.try_write().is_err());
        assert!(backend.snapshot().is_err() && backend.hash().is_err() && backend.defrag().is_err());
        assert_eq!(check_units(&backend.view()), n + 29, "what was applied stays visible");
        let count = disk.op_count();
        assert!(backend.close().is_err());
        drop(backend);
        disk.fail_after(-1);
        assert_eq!(disk.op_count(), count, "nothing is written after a failure");
        let again = Backend::open_disk(
            Arc::new(FileDisk::new(&crash(&[], &disk.ops(), Survives::Everything, &mut Random::new(1)))),
            Path::new("test"),
            manual(),
        );
        assert!(check_units(&again.unwrap().view()) >= 1);
    }
}

/// Not a test by itself: what the next one runs and kills.
#[test]
fn child() {
    let Some(dir) = std::env::var_os("STORAGE_TEST_DIR") else { return };
    let backend = Backend::open(&Path::new(&dir).join("db"), eager()).unwrap();
    let begin = check_units(&backend.view());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while backend.defrag().is_ok() {
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        for n in begin + 1.. {
            put_unit(&backend, n);
            if n % 20 == 0 {
                backend.commit().unwrap();
                println!("durable {n}");
            }
        }
    });
}

#[test]
fn killed_at_any_moment_even_while_defragmenting() {
    let dir = harness::tempdir();
    kill_children("crash::child", "STORAGE_TEST_DIR", dir.path(), |_| {
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "left-overs are gone");
    });
}

/// Runs the test `name` in a process of its own and kills it, again and again: what it said to be durable is there.
fn kill_children(name: &str, variable: &str, dir: &Path, check: impl Fn(u32)) {
    let mut rng = Random::new(2);
    let mut durable = 0;
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture", "--test-threads=1"])
            .env(variable, dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut left = 2 + rng.below(10);
        let mut take = |line: Option<std::io::Result<String>>| {
            if let Some(n) = line?.ok()?.strip_prefix("durable ") {
                durable = n.parse::<u64>().unwrap();
                left = left.saturating_sub(1);
            }
            Some(left > 0)
        };
        while take(lines.next()) == Some(true) {}
        std::thread::sleep(Duration::from_micros(rng.below(20_000)));
        child.kill().unwrap();
        while take(lines.next()).is_some() {}
        child.wait().unwrap();
        let backend = open(dir);
        let found = check_units(&backend.view());
        assert!(found >= durable && durable > 0, "round {round}: {found} < {durable}");
        check(round);
    }
}

/// Not a test by itself: what the next one runs and kills.
#[test]
fn child_that_takes_over() {
    let Some(dir) = std::env::var_os("STORAGE_TEST_TAKE_OVER_DIR") else { return };
    let dir = Path::new(&dir);
    let backend = Backend::open(&dir.join("db"), eager()).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = backend.defrag();
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        loop {
            let ahead = check_units(&backend.view()) + 60;
            let received = received(&backend, dir, ahead);
            // Less than the received file has, some of it pending when that comes.
            (ahead - 59..ahead - 20).for_each(|n| put_unit(&backend, n));
            backend.take_over(&received).unwrap();
            assert_eq!(check_units(&backend.view()), ahead);
            println!("durable {ahead}");
            (ahead + 1..ahead + 40).for_each(|n| put_unit(&backend, n));
            if ahead.is_multiple_of(7) {
                backend.commit().unwrap();
                println!("durable {}", ahead + 39);
            }
        }
    });
}

#[test]
fn killed_at_any_moment_while_taking_over() {
    let dir = harness::tempdir();
    kill_children("crash::child_that_takes_over", "STORAGE_TEST_TAKE_OVER_DIR", dir.path(), |round| {
        // Whatever was being received is another's to remove.
        let _ = std::fs::remove_file(dir.path().join("1.snap.db"));
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["db"], "round {round}: left-overs are gone");
    });
}

#[test]
fn damage_is_refused_or_told_and_never_a_panic() {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let backend = open(dir.path());
    (1..=200).for_each(|n| put_unit(&backend, n));
    backend.close().unwrap();
    drop(backend);
    let good = std::fs::read(&path).unwrap();
    let (mut refused, mut told) = (0, 0);
    for page in 0..good.len() / 4096 {
        for (offset, byte) in [(8, 0xff), (10, 0xff), (20, 0xff), (24, 0x7f), (27, 0x7f), (40, 0xff)] {
            let mut bad = good.clone();
            bad[page * 4096 + offset] ^= byte;
            let copy = dir.path().join("bad");
            std::fs::write(&copy, &bad).unwrap();
            let Ok(tool) = Backend::open_read_only(&copy, None) else {
                refused += 1;
                continue;
            };
            for bucket in storage::Bucket::ALL {
                drop(common::all(&tool.view(), bucket));
            }
            told += u32::from(tool.failed().is_some());
        }
    }
    assert!(refused > 0 && told > 0, "{refused} {told}");
}
