//! A definition and its object in one file, which kubectl applies before the kind is known.

use crate::common;

use common::{World, data, http::Http};

/// As on a real cluster, the first call creates the definition and does not find the object's kind, and the next one does.
#[test]
fn the_second_apply_of_one_file_creates_the_object() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = World::start();
    let read = |name: &str| std::fs::read_to_string(data(name)).expect("a file");
    let both = format!("{}\n---\n{}", read("crontabs.yaml"), read("my-cron.yaml"));
    let said = world.kubectl_with(&["apply", "-f", "-"], &both);
    assert!(said.code != Some(0));
    assert_eq!(said.stdout, "customresourcedefinition.apiextensions.k8s.io/crontabs.stable.example.com created\n");
    assert!(
        said.stderr.contains("no matches for kind \"CronTab\" in version \"stable.example.com/v1\""),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("ensure CRDs are installed first"), "{}", said.stderr);
    let said = world.kubectl_with(&["apply", "-f", "-"], &both).ok();
    assert!(said.contains("crontab.stable.example.com/my-cron created"), "{said}");
}

#[test]
fn both_names_of_the_protobuf_form_are_understood() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        for media in [
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf,application/json",
        ] {
            let (code, kind, bytes) = http.get_bytes("/openapi/v2", media).await;
            assert_eq!((code, kind.as_str()), (200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"));
            assert!(bytes.starts_with(b"\x0a\x032.0"), "the first field is the version of the form");
        }
        let (code, kind, bytes) = http.get_bytes("/openapi/v2", "application/json").await;
        assert_eq!((code, kind.as_str(), bytes[0]), (200, "application/json", b'{'));
    });
}
