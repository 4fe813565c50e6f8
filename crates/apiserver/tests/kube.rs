//! The scenario of `interop/kube`, through the public kube crate.

use crate::common;

use std::process::Command;

use common::World;

#[test]
fn kube_finds_a_kubernetes() {
    let Ok(scenario) = std::env::var("LOCKGATE_KUBE_SCENARIO") else {
        assert!(
            std::env::var("LOCKGATE_REQUIRE_PEERS").is_err(),
            "LOCKGATE_KUBE_SCENARIO must name the built interop/kube"
        );
        eprintln!("SKIPPED: LOCKGATE_KUBE_SCENARIO does not name the built interop/kube");
        return;
    };
    let world = World::start();
    let output =
        Command::new(scenario).env("KUBECONFIG", world.api().kubeconfig()).output().expect("the scenario starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("ok\n"), "{said}");
}
