//! Files for programs that cannot ask: `lockgate follow`.

use std::{fs, path::Path};

use harness::until;

use super::world::{LOCKGATE, World};

/// Files for programs that cannot ask follow the row of their version.
#[test]
fn files_follow() {
    let Some(world) = World::new() else { return };
    world.install();
    world.history(&["1.4.0"]);
    let mut controller = world.controller("1.4.0");
    let (kubeconfig, args, config) = (world.kubeconfig(), world.text("args"), world.text("config.yaml"));
    fs::write(&config, "logLevel: 4\n").unwrap();
    let common = ["--release-version", "1.4.0", "--kubeconfig", &kubeconfig, "--output"];
    let follow = |more: &[&str]| world.spawn("follow", &[&common[..], more].concat());
    let mut one = follow(&[&args, "--check-seconds", "1", "--format", "args", "--deny", "B"]);
    let mut other = follow(&[
        &config,
        "--check-seconds",
        "1",
        "--format",
        "config",
        "--config-path",
        "server.feature-gates",
        "--allow",
        "A",
    ]);
    let has = |path: &str, text: &str| fs::read_to_string(path).is_ok_and(|content| content.contains(text));
    until("files are written", || has(&args, "--feature-gates=A=false\n") && has(&config, "A=false"));
    world.choose("TechPreviewNoUpgrade");
    until("files follow", || has(&args, "--feature-gates=A=true\n") && has(&config, "A=true"));
    assert!(has(&config, "logLevel"));

    // Changes of the files by others are reverted without a change of the row. The rest of the config file is kept.
    fs::remove_file(&args).unwrap();
    fs::write(&config, "logLevel: 5 # kept\n").unwrap();
    until("files are restored", || has(&args, "--feature-gates=A=true\n") && has(&config, "A=true"));
    assert!(has(&config, "logLevel: 5 # kept\n"));
    // Neither a correct file nor an unreadable one is written, and the log has each message once. A third follower, which
    // looks as often, shows that some looks have passed.
    let stamp = |path: &str| fs::metadata(path).unwrap().modified().unwrap();
    let before = stamp(&args);
    fs::write(&config, "logLevel: [\n").unwrap();
    other.wait_log("the file cannot be kept");
    let clock = world.text("clock");
    let _clock = follow(&[&clock, "--check-seconds", "1", "--format", "args"]);
    for _ in 0..3 {
        until("the third file is written", || Path::new(&clock).exists());
        fs::remove_file(&clock).unwrap();
    }
    assert!(has(&config, "logLevel: [\n") && stamp(&args) == before);
    fs::write(&config, "{}\n").unwrap();
    until("the config file is kept again", || has(&config, "A=true"));
    other.wait_log("the file can be kept again");
    let log = one.log() + &other.log();
    let times = ["was removed", "somebody changed", "the file cannot be kept"].map(|text| log.matches(text).count());
    assert_eq!(times, [1, 2, 1], "{log}");

    let once = |more: &[&str]| {
        let args = [&["follow"], &common[..], &[&args, "--once"], more].concat();
        harness::run(Path::new(LOCKGATE), args).error()
    };
    let error = once(&["--format", "config", "--config-path", "a..b"]);
    assert!(error.contains("--config-path \"a..b\" has an empty key"), "{error}");
    let error = once(&["--allow", "Typo"]);
    assert!(error.contains("does not know the gates [\"Typo\"]"), "{error}");
    one.stop();
    other.stop();
    controller.stop();
}
