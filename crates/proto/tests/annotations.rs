//! The .proto files against their goldens: every element has a version, and names and numbers are etcd's.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use proto::{PACKAGES, Version, annotation_text, http_routes, pool};

fn testdata(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

fn messages() -> impl Iterator<Item = MessageDescriptor> {
    pool().all_messages().filter(|m| PACKAGES.contains(&m.package_name()))
}

fn enums() -> impl Iterator<Item = EnumDescriptor> {
    pool().all_enums().filter(|e| PACKAGES.contains(&e.package_name()))
}

/// Every element that has to carry a version, with the text it carries.
fn annotations() -> BTreeMap<String, Option<String>> {
    let mut found = BTreeMap::new();
    for m in messages() {
        found.insert(format!("message {}", m.full_name()), annotation_text(&m.options(), "versionpb.etcd_version_msg"));
        for f in m.fields() {
            found.insert(
                format!("field {}", f.full_name()),
                annotation_text(&f.options(), "versionpb.etcd_version_field"),
            );
        }
    }
    for e in enums() {
        let version = annotation_text(&e.options(), "versionpb.etcd_version_enum");
        found.insert(format!("enum {}", e.full_name()), version);
        for v in e.values() {
            let version = annotation_text(&v.options(), "versionpb.etcd_version_enum_value");
            found.insert(format!("value {}.{}", e.full_name(), v.name()), version);
        }
    }
    found
}

#[test]
fn every_element_has_a_version() {
    let missing: Vec<_> = annotations()
        .into_iter()
        .filter(|(_, text)| text.as_ref().is_none_or(|t| t.parse::<Version>().is_err()))
        .map(|(element, text)| format!("{element}: {text:?}"))
        .collect();
    assert!(missing.is_empty(), "elements without a version such as \"3.8\":\n{}", missing.join("\n"));
}

#[test]
fn every_package_of_ours_is_checked() {
    let mut unchecked: Vec<_> = pool().files().map(|f| f.package_name().to_owned()).collect();
    unchecked.retain(|p| !PACKAGES.contains(&p.as_str()));
    unchecked.retain(|p| !["versionpb", "google.api", "google.protobuf"].contains(&p.as_str()));
    assert!(unchecked.is_empty(), "packages missing in proto::PACKAGES: {unchecked:?}");
}

#[test]
fn nothing_is_older_than_what_holds_it() {
    let found = annotations();
    let version = |key: String| found[&key].as_ref().unwrap().parse::<Version>().unwrap();
    for m in messages() {
        for f in m.fields() {
            let (outer, inner) =
                (version(format!("message {}", m.full_name())), version(format!("field {}", f.full_name())));
            assert!(inner >= outer, "{} is of {inner}, its message of {outer}", f.full_name());
        }
    }
    for e in enums() {
        for v in e.values() {
            let (outer, inner) =
                (version(format!("enum {}", e.full_name())), version(format!("value {}.{}", e.full_name(), v.name())));
            assert!(inner >= outer, "{} is of {inner}, its enum of {outer}", v.full_name());
        }
    }
}

/// `UPDATE_GOLDENFILES=1` rewrites the list.
#[test]
fn versions_are_those_of_the_golden_list() {
    let path = testdata("versions.txt");
    let mut text =
        String::from("# The release that brought each element. Written by the test in tests/annotations.rs.\n");
    for (element, version) in annotations() {
        text.push_str(&format!("{element} {}\n", version.unwrap_or_default()));
    }
    if env::var_os("UPDATE_GOLDENFILES").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    for (ours, theirs) in text.lines().zip(golden.lines()) {
        assert_eq!(ours, theirs, "left is the .proto files, right testdata/versions.txt");
    }
    assert_eq!(text.lines().count(), golden.lines().count());
}

fn field_line(f: &FieldDescriptor) -> String {
    let kind = match f.kind() {
        Kind::Message(m) => m.full_name().to_owned(),
        Kind::Enum(e) => e.full_name().to_owned(),
        scalar => format!("{scalar:?}").to_lowercase(),
    };
    let shape = match (f.is_list(), f.is_packed()) {
        (_, true) => "packed",
        (true, _) => "list",
        _ => "single",
    };
    let oneof = f.containing_oneof().map_or("-".to_owned(), |o| o.name().to_owned());
    let declared = f.parent_message().descriptor_proto().field.iter().position(|p| p.number() as u32 == f.number());
    let (name, number, json) = (f.full_name(), f.number(), f.json_name());
    format!("field {name} {number} {kind} {shape} {json} {oneof} {}", declared.unwrap())
}

/// Lines as in testdata/etcd-3.7.txt, and the version of each.
fn our_elements() -> BTreeMap<String, String> {
    let versions = annotations();
    let mut lines = BTreeMap::new();
    let mut add = |line: String, element: String| lines.insert(line, versions[&element].clone().unwrap_or_default());
    for m in messages() {
        add(format!("message {}", m.full_name()), format!("message {}", m.full_name()));
        for f in m.fields() {
            add(field_line(&f), format!("field {}", f.full_name()));
        }
    }
    for e in enums() {
        add(format!("enum {}", e.full_name()), format!("enum {}", e.full_name()));
        for v in e.values() {
            let element = format!("value {}.{}", e.full_name(), v.name());
            add(format!("{element} {}", v.number()), element);
        }
    }
    lines
}

#[test]
fn names_numbers_and_types_are_etcds() {
    let ours = our_elements();
    let golden = fs::read_to_string(testdata("etcd-3.7.txt")).unwrap();
    let mut theirs = BTreeMap::new();
    let elements =
        golden.lines().filter(|l| !l.starts_with(['#']) && !l.starts_with("rpc ") && !l.starts_with("post "));
    for line in elements {
        let (element, since) = line.rsplit_once(' ').unwrap();
        theirs.insert(element, since);
    }
    for (element, since) in &theirs {
        let version = ours.get(*element);
        assert!(version.is_some(), "etcd 3.7 has this, the .proto files do not:\n{element}");
        assert!(*since == "-" || version.unwrap() == since, "{element}: ours {version:?}, etcd's {since}");
    }
    for (element, version) in &ours {
        let newer = version.parse::<Version>().unwrap() > Version::new(3, 7);
        // etcd 3.6 was the last to know it; logs of that time hold it.
        let words: Vec<_> = element.split(' ').collect();
        let gone = words[1] == "etcdserverpb.Request" || words[1].starts_with("etcdserverpb.Request.");
        assert!(
            theirs.contains_key(element.as_str()) || newer || gone,
            "not in etcd 3.7, but not newer either:\n{element}"
        );
    }
}

/// What no etcd has.
const OURS_ALONE: &[&str] = &[
    "post /v3/kv/increment etcdserverpb.KV.Increment",
    "post /v3/maintenance/featuregate etcdserverpb.Maintenance.FeatureGateStatus",
    "post /v3/maintenance/featuregate/history etcdserverpb.Maintenance.FeatureGateHistory",
    "rpc etcdserverpb.KV.Increment etcdserverpb.IncrementRequest etcdserverpb.IncrementResponse",
    "rpc etcdserverpb.Maintenance.FeatureGateHistory etcdserverpb.FeatureGateHistoryRequest \
     stream:etcdserverpb.FeatureGateHistoryResponse",
    "rpc etcdserverpb.Maintenance.FeatureGateStatus etcdserverpb.FeatureGateStatusRequest \
     etcdserverpb.FeatureGateStatusResponse",
];

#[test]
fn methods_and_paths_are_etcds() {
    let mut ours = Vec::new();
    for m in pool().services().flat_map(|s| s.methods().collect::<Vec<_>>()) {
        let stream = |on| if on { "stream:" } else { "" };
        ours.push(format!(
            "rpc {} {}{} {}{}",
            m.full_name(),
            stream(m.is_client_streaming()),
            m.input().full_name(),
            stream(m.is_server_streaming()),
            m.output().full_name()
        ));
    }
    ours.extend(http_routes().iter().map(|r| format!("post {} {}.{}", r.path, r.service, r.method)));
    ours.sort();
    let golden = fs::read_to_string(testdata("etcd-3.7.txt")).unwrap();
    let mut theirs: Vec<_> = golden.lines().filter(|l| l.starts_with("rpc ") || l.starts_with("post ")).collect();
    theirs.extend(OURS_ALONE);
    theirs.sort();
    assert_eq!(ours, theirs);
}
