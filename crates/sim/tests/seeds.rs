//! Seeds that CI runs: some hundred new ones each time, and those that have found something.

use sim::{Config, Report, run};
use test_case::test_case;

fn config(seed: u64) -> Config {
    Config { seed, members: None, seconds: 20, trace: false }
}

fn must_pass(config: &Config) -> Report {
    let Config { seed, seconds, members, .. } = config;
    println!("SEED {seed}");
    run(config).unwrap_or_else(|violation| {
        let members = members.map_or(String::new(), |n| format!(" --members {n}"));
        panic!(
            "SEED {seed}: {violation}\nrepeat with: \
             cargo run -p sim -- --seed {seed} --seeds 1 --seconds {seconds}{members} --trace\nSEED {seed}"
        )
    })
}

/// As many as fit into a minute; `LOCKGATE_SEED` sets the first one, so that every commit can have its own.
#[test]
fn many_seeds() {
    let first = std::env::var("LOCKGATE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1u64) % (1 << 32);
    let first = first * 1000;
    let mut sum = Report::default();
    for seed in first..first + 150 {
        let report = must_pass(&config(seed));
        sum.crashes += report.crashes;
        sum.databases_received += report.databases_received;
        sum.member_changes += report.member_changes;
        sum.leaders += report.leaders;
    }
    // A simulator in which nothing goes wrong proves nothing.
    assert!(sum.crashes > 150, "{sum:?}");
    assert!(sum.databases_received > 40, "{sum:?}");
    assert!(sum.member_changes > 75, "{sum:?}");
    assert!(sum.leaders > 300, "{sum:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [11, 12, 13, 14, 15] {
        assert_eq!(must_pass(&config(seed)), must_pass(&config(seed)), "SEED {seed}");
    }
    assert_ne!(must_pass(&config(11)).trace, must_pass(&config(12)).trace);
}

#[test]
fn five_members() {
    must_pass(&Config { members: Some(5), ..config(3) });
}

// What each of them once found has a test of its own where it was mended; a seed takes another course as the simulator grows.
#[test_case(3; "a compaction at revision 0")]
#[test_case(8; "entries that a later leader has overwritten")]
#[test_case(10; "a leader that removes itself")]
#[test_case(23; "a lease let go by a leader that had been asleep")]
#[test_case(101; "a lease renewed by a leader that had been asleep")]
#[test_case(192; "a member added behind a slow disk")]
#[test_case(253; "a stale read of the only voter beside a learner")]
#[test_case(4869; "a raft thread that never rests without a leader")]
#[test_case(3_000_301; "a version that a lone member applied at its very end")]
#[test_case(10035; "an election before a received database is in place")]
#[test_case(11541; "an older snapshot recorded after a received one")]
#[test_case(24883; "a member stopped for the removal of another")]
#[test_case(27139; "a vote forgotten by a member that has just joined")]
#[test_case(200295; "a configuration change before a received snapshot")]
#[test_case(200448; "a removal that the last voter forgot in a power cut")]
#[test_case(300003; "a lease renewed by a leader whose apply lags")]
fn found_by(seed: u64) {
    must_pass(&config(seed));
}
