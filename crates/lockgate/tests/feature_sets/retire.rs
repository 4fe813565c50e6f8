//! A gate is retired only if no installed version needs it, whatever the history lists as installed.

use harness::Output;

use super::world::World;

/// B is off in 1.6.0 and in 1.4.0; in 1.5.0 it is a preview.
#[track_caller]
fn world() -> Option<World> {
    let world = World::new()?;
    world.release("1.6.0", &[("A", "Default"), ("B", "")]);
    world.install();
    world.history(&["1.4.0"]);
    Some(world)
}

fn retire(world: &World) -> Output {
    world.gates(&["--file", &format!("{}/gates.toml", world.text("1.6.0")), "retire", "B", "--cluster", "--dry-run"])
}

/// The controller of 1.5.0 was upgraded first, which the history does not show.
#[test]
fn a_version_that_only_reports_is_installed() {
    let Some(world) = world() else { return };
    let mut first = world.controller("1.4.0");
    world.until_reported("1.4.0");
    retire(&world).ok();
    first.stop();
    let mut controller = world.controller("1.5.0");
    world.until_reported("1.5.0");
    let said = retire(&world).error();
    assert!(said.contains("version 1.5.0 still needs it: there it is on in some sets and off in others"), "{said}");
    controller.stop();
    let _back = world.controller("1.4.0");
    world.until_reported("1.4.0");
    retire(&world).ok();
}

/// The gate is on in no set, and the cluster has turned it on by name.
#[test]
fn gates_in_custom_lists_are_needed() {
    let Some(world) = world() else { return };
    let _controller = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    retire(&world).ok();
    let custom = r#"{"spec":{"featureSet":"CustomNoUpgrade","customNoUpgrade":{"enabled":["B"]}}}"#;
    world.good(&["patch", "featuregate", "cluster", "--type=merge", "-p", custom]);
    world.until_rows("1.4.0:B");
    let said = retire(&world).error();
    assert!(said.contains("version 1.4.0 still needs it: the cluster has it on there, by its custom lists"), "{said}");
}
