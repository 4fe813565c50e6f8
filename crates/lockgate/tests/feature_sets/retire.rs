//! A gate goes only when nothing that runs in the cluster needs it, whatever the history says of what runs.

use super::{World, has_kubectl};

/// B is off in 1.6.0 and in 1.4.0; in 1.5.0 it is a preview.
fn world() -> World {
    let world = World::new();
    world.release("1.6.0", &[("A", "Default"), ("B", "")]);
    world.install();
    world.history(&["1.4.0"]);
    world
}

fn retire(world: &World) -> Result<String, String> {
    world.command(&["--file", &format!("{}/gates.toml", world.text("1.6.0")), "retire", "B", "--cluster", "--dry-run"])
}

/// The controller of 1.5.0 went first, and nobody has written that down in the history.
#[test]
fn a_version_that_only_reports_is_installed() {
    if !has_kubectl() {
        return;
    }
    let world = world();
    let first = world.controller("1.4.0");
    world.until("1.4.0 is reported", || world.reported() == "1.4.0");
    retire(&world).unwrap();
    first.stop();
    let controller = world.controller("1.5.0");
    world.until("1.5.0 is reported", || world.reported() == "1.5.0");
    let said = retire(&world).unwrap_err();
    assert!(said.contains("version 1.5.0 still needs it: there it is on in some sets and off in others"), "{said}");
    controller.stop();
    let _back = world.controller("1.4.0");
    world.until("1.4.0 is reported", || world.reported() == "1.4.0");
    retire(&world).unwrap();
}

/// In no set is it on, and the cluster has turned it on all the same.
#[test]
fn custom_lists_need_what_they_turn_on() {
    if !has_kubectl() {
        return;
    }
    let world = world();
    let _controller = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    retire(&world).unwrap();
    let custom = r#"{"spec":{"featureSet":"CustomNoUpgrade","customNoUpgrade":{"enabled":["B"]}}}"#;
    world.good(&["patch", "featuregate", "cluster", "--type=merge", "-p", custom]);
    world.until_rows("1.4.0:B");
    let said = retire(&world).unwrap_err();
    assert!(said.contains("version 1.4.0 still needs it: the cluster has it on there, by its custom lists"), "{said}");
}
