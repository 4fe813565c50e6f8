//! An upgrade and a downgrade with processes alone: API server, controllers of two versions, and the example operators. Every
//! line of the operators is compared, so that a superfluous restart or a row of another version is found.

use std::{fs, path::Path};

use featuretest::Operator;

use super::world::{Controller, World, wait_seconds};

const SLOW: &str = "version 1.4.0: the slow path";
const FAST: &str = "version 1.4.0: the fast path";

impl World {
    #[track_caller]
    fn operator(&self, program: &Path, version: &str) -> Operator {
        Operator::start(program, version, &self.path("api/admin.kubeconfig"))
    }

    /// Runs a command of `lockgate gates` that waits for a condition of the cluster.
    #[track_caller]
    fn wait(&self, args: &[&str]) {
        self.gates(&[args, &["--wait-seconds", &wait_seconds()]].concat()).ok();
    }

    fn reverse_rows(&self) {
        let mut object = self.feature_gate();
        object["status"]["featureGates"].as_array_mut().unwrap().reverse();
        fs::write(self.path("reversed.json"), object.to_string()).unwrap();
        self.good(&["replace", "--subresource=status", "-f", &self.text("reversed.json")]);
    }
}

/// Replaces a controller. The new one starts first, as in a rollout.
#[track_caller]
fn replace(world: &World, mut old: Controller, version: &str) -> Controller {
    let new = world.controller(version);
    old.stop();
    new
}

#[test]
fn everyone_sees_the_row_of_its_own_version() {
    let (Some(restarts), Some(hook)) = (Operator::program("restarts"), Operator::program("hook")) else { return };
    let Some(mut world) = World::new() else { return };
    world.release("1.4.0", &[("FastPath", "OKD"), ("Other", "")]);
    world.release("1.5.0", &[("FastPath", ""), ("Other", "OKD")]);
    world.install();
    world.good(&["apply", "-f", &world.text("1.4.0/manifests/2-policies.yaml")]);
    let (one, hook) = (world.operator(&restarts, "1.4.0"), world.operator(&hook, "1.4.0"));
    let controller = world.controller("1.4.0");
    world.wait(&["version", "begin", "1.4.0"]);
    world.gates(&["version", "complete", "1.4.0"]).ok();
    one.says(&[SLOW]);
    hook.says(&["version 1.4.0: fast path false"]);

    // A change of the set: one restart, and one switch.
    world.choose("OKD");
    let restarted = [SLOW, "leaving: a gate has changed", "exit 0", FAST];
    let switched = ["version 1.4.0: fast path false", "switched: fast path true"];
    one.says(&restarted);
    hook.says(&switched);

    // Up: the controller first, then one operator, for which the gate is off.
    let controller = replace(&world, controller, "1.5.0");
    world.wait(&["version", "begin", "1.5.0"]);
    assert_eq!(world.rows(), "1.4.0:FastPath 1.5.0:Other");
    let upgraded = world.operator(&restarts, "1.5.0");
    upgraded.says(&["version 1.5.0: the slow path"]);

    // Rows in another order, and a restart of the API server, after which everything is listed and watched again.
    world.reverse_rows();
    world.stop_api();
    world.start_api();
    world.wait(&["status", "--wait"]);

    // Down again, the controller first. The row of 1.5.0 stays while an operator runs with it.
    let mut controller = replace(&world, controller, "1.4.0");
    world.wait(&["version", "abort", "1.5.0"]);
    world.gates(&["version", "complete", "1.4.0"]).ok();
    world.look_again(&controller);
    assert_eq!(world.rows(), "1.4.0:FastPath 1.5.0:Other");
    upgraded.says(&["version 1.5.0: the slow path"]);
    one.says(&restarted);
    hook.says(&switched);
    drop((one, hook, upgraded));
    controller.stop();
}
