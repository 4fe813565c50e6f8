//! A point that ends the process, in a process of its own: this test runs itself again.

use std::process::{Command, Output};

const CHILD: &str = "FAILPOINT_TEST_CHILD";

fn child(terms: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["child_of_the_others", "--exact", "--nocapture"]).env(CHILD, terms);
    command.output().expect("runs")
}

/// Does nothing unless one of the tests below has started it.
#[test]
fn child_of_the_others() {
    let Ok(terms) = std::env::var(CHILD) else { return };
    failpoint::enable("afterCommit", &terms).expect("terms");
    // On another thread: the whole process ends all the same.
    std::thread::spawn(|| failpoint::hit(failpoint::position("afterCommit"))).join().expect("no unwinding");
    std::process::exit(77);
}

#[test]
fn a_panic_ends_the_process_as_in_go() {
    for (terms, text) in [
        ("panic", "panic: failpoint panic: {}\n"),
        ("panic(\"out\")", "panic: failpoint panic: out\n"),
        ("panic->off", "panic: failpoint panic: afterCommit\n"),
    ] {
        let output = child(terms);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(text), "{output:?}");
    }
}

#[test]
fn others_do_not() {
    let output = child("print");
    assert_eq!(output.status.code(), Some(77), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("failpoint print: afterCommit\n"));
}
