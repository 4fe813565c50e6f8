//! The whole story with processes alone: API server, controllers of two versions, and the example operators, whose every line is
//! compared: a restart too many, or a row of another version seen for a moment, would show.

#[path = "../../../accessor/tests/support/mod.rs"]
mod operators;

use std::{fs, process::Command, time::Duration};

use operators::Operator;
use serde_json::Value;

use super::{LOCKGATE, Process, World, has_kubectl};

const SLOW: &str = "version 1.4.0: the slow path";
const FAST: &str = "version 1.4.0: the fast path";

/// The examples are built with `accessor`, which whoever tests this crate alone may not have built.
fn has_examples() -> bool {
    let dir = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples");
    let found = ["restarts", "hook"].iter().all(|name| dir.join(name).exists());
    assert!(found || std::env::var("LOCKGATE_REQUIRE_PEERS").is_err(), "the examples of accessor are required");
    if !found {
        eprintln!("SKIPPED: build the examples first, cargo build -p accessor --examples");
    }
    found
}

impl World {
    fn start(&self, name: &'static str, version: &'static str) -> Operator {
        Operator::start(name, version, self.path("api/admin.kubeconfig"))
    }

    #[track_caller]
    fn gates(&self, line: &str) -> String {
        let said = Command::new(LOCKGATE)
            .arg("gates")
            .args(line.split_whitespace())
            .env("KUBECONFIG", self.path("api/admin.kubeconfig"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
        assert!(said.status.success(), "gates {line}: {text}\n{}", self.logs());
        text
    }

    #[track_caller]
    fn says(&self, operator: &Operator, want: &[&str]) {
        self.until(&format!("{want:?} was said, not {:?}", operator.said.lock().unwrap()), || {
            *operator.said.lock().unwrap() == want
        });
    }

    fn reverse_rows(&self) {
        let text = self.good(&["get", "featuregate", "cluster", "-o", "json"]);
        let mut object: Value = serde_json::from_str(&text).unwrap();
        object["status"]["featureGates"].as_array_mut().unwrap().reverse();
        fs::write(self.path("reversed.json"), object.to_string()).unwrap();
        self.good(&["replace", "--subresource=status", "-f", &self.text("reversed.json")]);
    }
}

/// Who takes over starts first, as in a rollout.
fn replace(world: &World, old: Process, version: &str) -> Process {
    let new = world.controller(version);
    old.stop();
    new
}

#[test]
fn everyone_sees_the_row_of_its_own_version() {
    if !has_kubectl() || !has_examples() {
        return;
    }
    let mut world = World::new();
    world.release("1.4.0", &[("FastPath", "OKD"), ("Other", "")]);
    world.release("1.5.0", &[("FastPath", ""), ("Other", "OKD")]);
    world.install();
    world.good(&["apply", "-f", &world.text("1.4.0/manifests/2-policies.yaml")]);
    let (one, hook) = (world.start("restarts", "1.4.0"), world.start("hook", "1.4.0"));
    let controller = world.controller("1.4.0");
    world.gates("version begin 1.4.0 --wait-seconds 90");
    world.gates("version complete 1.4.0");
    world.says(&one, &[SLOW]);
    world.says(&hook, &["version 1.4.0: fast path false"]);

    // The set is changed: one restart, and one switch.
    world.choose("OKD");
    let restarted = [SLOW, "leaving: a gate has changed", "exit Some(0)", FAST];
    let switched = ["version 1.4.0: fast path false", "switched: fast path true"];
    world.says(&one, &restarted);
    world.says(&hook, &switched);

    // Up: the controller first, then one operator, for which the gate is off.
    let controller = replace(&world, controller, "1.5.0");
    world.gates("version begin 1.5.0 --wait-seconds 90");
    assert_eq!(world.rows(), "1.4.0:FastPath 1.5.0:Other");
    let upgraded = world.start("restarts", "1.5.0");
    world.says(&upgraded, &["version 1.5.0: the slow path"]);

    // Rows in another order, and an API server that starts anew, so that all is listed and watched again.
    world.reverse_rows();
    world.api.take().unwrap().stop();
    world.start_api();
    world.ready();
    world.gates("status --wait --wait-seconds 90");

    // Down again, the controller first. The row of 1.5.0 stays while somebody runs with it.
    let controller = replace(&world, controller, "1.4.0");
    world.gates("version abort 1.5.0 --wait-seconds 90");
    world.gates("version complete 1.4.0");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(world.rows(), "1.4.0:FastPath 1.5.0:Other");
    world.says(&upgraded, &["version 1.5.0: the slow path"]);
    world.says(&one, &restarted);
    world.says(&hook, &switched);
    drop((one, hook, upgraded));
    controller.stop();
}
