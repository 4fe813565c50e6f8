//! Files for programs that cannot ask: `lockgate follow`.

use std::{fs, process::Command, time::Duration};

use super::{LOCKGATE, Process, World, has_kubectl};

/// Files for programs that cannot ask follow the row of their version.
#[test]
fn files_follow() {
    if !has_kubectl() {
        return;
    }
    let world = World::new();
    world.install();
    world.history(&["1.4.0"]);
    let controller = world.controller("1.4.0");
    let (kubeconfig, args, config) =
        (world.text("api/admin.kubeconfig"), world.text("args"), world.text("config.yaml"));
    fs::write(&config, "logLevel: 4\n").unwrap();
    let common = ["follow", "--release-version", "1.4.0", "--kubeconfig", &kubeconfig, "--output"];
    let follow = |more: &[&str]| Process::start(&[&common[..], more].concat(), &world.path("follow.log"));
    let one = follow(&[&args, "--check-seconds", "1", "--format", "args", "--deny", "B"]);
    let other = follow(&[
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
    world.until("files are written", || has(&args, "--feature-gates=A=false\n") && has(&config, "A=false"));
    world.choose("TechPreviewNoUpgrade");
    world.until("files follow", || has(&args, "--feature-gates=A=true\n") && has(&config, "A=true"));
    assert!(has(&config, "logLevel"));

    // What others do to the files is undone, without any change of the row; what is theirs stays.
    fs::remove_file(&args).unwrap();
    fs::write(&config, "logLevel: 5 # theirs\n").unwrap();
    world.until("files are back", || has(&args, "--feature-gates=A=true\n") && has(&config, "A=true"));
    assert!(has(&config, "logLevel: 5 # theirs\n"));
    // Right is left alone, broken too, until it can be read again; the log says each thing once.
    let stamp = |path: &str| fs::metadata(path).unwrap().modified().unwrap();
    let before = stamp(&args);
    fs::write(&config, "logLevel: [\n").unwrap();
    world.until("it is told", || has(&world.text("follow.log"), "the file cannot be kept"));
    std::thread::sleep(Duration::from_secs(3));
    assert!(has(&config, "logLevel: [\n") && stamp(&args) == before);
    fs::write(&config, "{}\n").unwrap();
    world.until("it is kept again", || has(&config, "A=true"));
    world.until("that is told", || has(&world.text("follow.log"), "the file can be kept again"));
    let log = fs::read_to_string(world.path("follow.log")).unwrap();
    let times = ["was removed", "somebody changed", "the file cannot be kept"].map(|text| log.matches(text).count());
    assert_eq!(times, [1, 2, 1], "{log}");

    let odd = [&common[..], &[&args, "--once", "--format", "config", "--config-path", "a..b"]].concat();
    let said = Command::new(LOCKGATE).args(odd).output().unwrap();
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(!said.status.success() && error.contains("--config-path \"a..b\" has an empty key"), "{error}");
    let unknown = [&common[..], &[&args, "--once", "--allow", "Typo"]].concat();
    let said = Command::new(LOCKGATE).args(unknown).output().unwrap();
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(!said.status.success() && error.contains("does not know the gates [\"Typo\"]"), "{error}");
    one.stop();
    other.stop();
    controller.stop();
}
