//! A point that ends the process. Each test starts this test program again, as the process that ends.

use std::process::Command;

use harness::Output;

const CHILD: &str = "FAILPOINT_TEST_CHILD";

fn child(terms: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["child_of_the_others", "--exact", "--nocapture"]).env(CHILD, terms);
    Output::of(&mut command)
}

/// Does nothing unless one of the tests below has started it.
#[test]
fn child_of_the_others() {
    let Ok(terms) = std::env::var(CHILD) else { return };
    failpoint::enable("afterCommit", &terms).expect("terms");
    // The whole process ends, although the point is on another thread.
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
        assert_eq!(output.code, Some(2), "{output:?}");
        assert!(output.stderr.contains(text), "{output:?}");
    }
}

#[test]
fn other_actions_do_not_end_the_process() {
    let output = child("print");
    assert_eq!(output.code, Some(77), "{output:?}");
    assert!(output.stdout.contains("failpoint print: afterCommit\n"));
}
