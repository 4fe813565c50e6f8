//! The table of names compared with the sources: each point that is offered has a place.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use failpoint::{NAMES, Place};

#[test]
fn every_offered_point_has_its_place() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/");
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for krate in fs::read_dir(crates).expect("crates/").flatten().filter(|e| e.file_name() != "failpoint") {
        visit(&krate.path().join("src"), &mut found);
    }
    let offered: Vec<_> = NAMES.iter().filter(|(_, place)| *place == Place::Here).map(|(name, _)| *name).collect();
    let placed: Vec<_> = found.keys().map(String::as_str).collect();
    assert_eq!(placed, offered, "names.rs marks other points as Here than there are in the sources");
}

#[test]
fn names_are_in_order() {
    assert!(NAMES.is_sorted_by_key(|(name, _)| *name));
}

fn visit(dir: &Path, found: &mut BTreeMap<String, Vec<PathBuf>>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            visit(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            for part in text.split("failpoint!(\"").skip(1) {
                let name = part.split('"').next().unwrap_or_default().to_owned();
                found.entry(name).or_default().push(path.clone());
            }
        }
    }
}
