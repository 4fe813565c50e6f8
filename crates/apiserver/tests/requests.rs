//! Every step of `interop/requests` gets the answer of kube-apiserver, except for the rows of `known-differences.txt` there.
//!
//! `UPDATE_GOLDENFILES=1` records Lockgate's answers in rows with an intended difference; `cargo xtask interop kube --all --only
//! requests` records those of Kubernetes. `REQUESTS=name` runs one script.

use crate::common;

use std::{env, fs, path::Path};

use common::World;
use requests::{Known, Report, Target};

#[test]
fn answers_are_those_of_kubernetes() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/requests");
    let scratch = harness::tempdir();
    let tokens = scratch.path().join("tokens.csv");
    fs::write(&tokens, requests::TOKENS).expect("tokens");
    let world = World::start_with(|options| options.token_file = Some(tokens));
    let address = world.api().url().trim_start_matches("https://").parse().expect("an address");
    let target = Target::new(address).expect("a target");
    let mut known = Known::read(&dir).expect("known differences");
    let (mut report, mut names) = (Report::default(), Vec::new());
    for (path, mut script) in requests::read_dir(&dir).expect("scripts") {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if env::var("REQUESTS").is_ok_and(|only| only != name) {
            continue;
        }
        let answers = requests::run(&script, &target).expect(&name);
        if env::var("UPDATE_GOLDENFILES").is_ok_and(|value| value == "1") {
            script.keep(&name, None, &answers, &mut known);
            fs::write(&path, script.to_string()).expect("a script is written");
        }
        report.ours(&name, &script, &answers, &mut known);
        names.push(name);
    }
    assert!(report.steps > 0, "no step was run");
    assert!(report.different.is_empty(), "{} differ:\n{}", report.different.len(), report.different.join("\n\n"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(known.unused(&names).is_empty(), "no longer differ: {:?}", known.unused(&names));
}
