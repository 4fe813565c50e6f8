//! The scenario of `interop/kube`, through the public kube crate.

use crate::common;

use std::{env, process::Command};

use common::World;
use harness::Output;

#[test]
fn the_kube_crate_works() {
    let Some(scenario) = env::var_os("LOCKGATE_KUBE_SCENARIO") else {
        harness::skip("LOCKGATE_KUBE_SCENARIO does not name the built interop/kube");
        return;
    };
    let world = World::start();
    let printed = Output::of(Command::new(scenario).env("KUBECONFIG", world.kubeconfig())).ok();
    assert!(printed.contains("ok\n"), "{printed}");
}
