//! What must hold for every file, every choice and every change.

use std::collections::{BTreeMap, BTreeSet};

use featureset::{
    Choice, Gate, GatesFile, Registry, Set,
    change::{Proof, apply_edits, plan_demote, plan_promote},
    config_map::{of_config_map, to_config_map},
    exception::Exception,
    file::{Edit, Output, edit},
    resolve,
    set::{LISTED, ORDER},
};
use proptest::prelude::*;

const PROFILES: [&str; 2] = ["P", "Q"];

fn sets() -> impl Strategy<Value = BTreeSet<Set>> {
    prop_oneof![
        Just(BTreeSet::new()),
        Just(Set::DevPreview.with_wider().into_iter().collect()),
        Just(Set::TechPreview.with_wider().into_iter().collect()),
        Just(Set::Default.with_wider().into_iter().collect()),
        Just(BTreeSet::from([Set::Okd, Set::DevPreview])),
    ]
}

fn gate(i: usize) -> impl Strategy<Value = Gate> {
    (sets(), prop::option::of(sets()), any::<bool>()).prop_map(move |(sets, own, reversible)| Gate {
        name: format!("G{i}"),
        owner: "o".to_owned(),
        contact: "c".to_owned(),
        enhancement: "https://example.com/1".to_owned(),
        description: "A \"quoted\" word and a\nnew line.".to_owned(),
        since: "1.4".parse().unwrap(),
        expires: None,
        depends_on: BTreeSet::new(),
        reversible,
        sets,
        profiles: own.map(|own| BTreeMap::from([("Q".to_owned(), own)])).unwrap_or_default(),
    })
}

/// The text of a sound file.
fn text() -> impl Strategy<Value = String> {
    let gates = (0..8usize).map(|i| prop::option::of(gate(i)).boxed()).collect::<Vec<_>>();
    gates.prop_map(|gates| {
        let edits: Vec<Edit> = gates.into_iter().flatten().map(|gate| Edit::Add(Box::new(gate))).collect();
        edit("schema = 1\nversion = \"1.4.0\"\nprofiles = [\"P\", \"Q\"]\n", &edits).unwrap()
    })
}

fn choice() -> impl Strategy<Value = Choice> {
    let names = prop::collection::btree_set((0..10usize).prop_map(|i| format!("G{i}")), 0..5);
    prop_oneof![
        prop::sample::select(LISTED.to_vec()).prop_map(Choice::of_set),
        (names.clone(), names).prop_map(|(enabled, disabled)| {
            let disabled = disabled.difference(&enabled).cloned().collect();
            Choice { set: Set::Custom, enabled, disabled }
        }),
    ]
}

fn registry(file: &GatesFile) -> Registry {
    Registry::of_file(file, &file.version).unwrap()
}

proptest! {
    #[test]
    fn lists_are_disjoint_and_complete(text in text(), choice in choice()) {
        let file = GatesFile::parse(&text).unwrap();
        let registry = registry(&file);
        for profile in PROFILES {
            let resolved = resolve(&registry, profile, &choice).unwrap();
            let row = &resolved.row;
            prop_assert!(row.enabled.is_disjoint(&row.disabled));
            let all: BTreeSet<&String> = row.enabled.union(&row.disabled).collect();
            prop_assert_eq!(all, file.gates.keys().collect::<BTreeSet<_>>());
            for name in choice.names() {
                prop_assert_eq!(resolved.unknown.contains(name), !file.gates.contains_key(name));
                let want = file.gates.contains_key(name).then(|| choice.enabled.contains(name));
                prop_assert_eq!(row.get(name), want);
            }
        }
    }

    #[test]
    fn smaller_sets_are_within_wider_ones(text in text()) {
        let registry = registry(&GatesFile::parse(&text).unwrap());
        for (profile, (small, wide)) in PROFILES.into_iter().flat_map(|p| ORDER.map(|order| (p, order))) {
            let enabled = |set| resolve(&registry, profile, &Choice::of_set(set)).unwrap().row.enabled;
            prop_assert!(enabled(small).is_subset(&enabled(wide)));
        }
    }

    /// The registry that a version left in the cluster gives the same rows whatever the file has become since.
    #[test]
    fn a_change_never_changes_rows_of_older_versions(
        text in text(), choice in choice(), steps in prop::collection::vec((0..8usize, 0..5usize, any::<bool>()), 1..6),
    ) {
        let mut file = GatesFile::parse(&text).unwrap();
        let mut text = text;
        let released = to_config_map(&registry(&file), "ns");
        let row_of_release = || resolve(&of_config_map(&released).unwrap(), "P", &choice).unwrap().row;
        let before = row_of_release();
        for (gate, set, up) in steps {
            let name = format!("G{gate}");
            let excuse = |set: &Set| Exception { gate: name.clone(), profile: None, set: *set, reason: "r".to_owned() };
            let proof = Proof { exceptions: LISTED.iter().map(excuse).collect(), ..Proof::default() };
            let to = LISTED.get(set).copied();
            let edits = match (up, to) {
                (true, Some(to)) => plan_promote(&file, &name, to, &[], &proof),
                (_, to) => plan_demote(&file, &name, to, &[]),
            };
            if let Ok(changed) = edits.and_then(|edits| apply_edits(&text, &file, &edits)) {
                prop_assert!(!changed.flips.is_empty());
                (text, file) = (changed.text, changed.file);
            }
            prop_assert_eq!(&row_of_release(), &before);
        }
        let next = Registry::of_file(&file, "1.5.0").unwrap();
        prop_assert_eq!(resolve(&next, "P", &choice).unwrap().row.version, "1.5.0");
        prop_assert_eq!(row_of_release(), before);
    }

    #[test]
    fn a_registry_survives_the_cluster(text in text()) {
        let registry = registry(&GatesFile::parse(&text).unwrap());
        prop_assert_eq!(of_config_map(&to_config_map(&registry, "ns")), Ok(registry.clone()));
        // A hand that changes it is found out.
        let mut object = to_config_map(&registry, "ns");
        let changed = registry.to_json().replacen("DevPreviewNoUpgrade", "OKD", 1);
        object["data"]["registry.json"] = changed.into();
        prop_assert!(of_config_map(&object).is_err());
    }

    #[test]
    fn adding_a_gate_gives_that_gate(text in text(), new in gate(9)) {
        let before = GatesFile::parse(&text).unwrap();
        let after = GatesFile::parse(&edit(&text, &[Edit::Add(Box::new(new.clone()))]).unwrap()).unwrap();
        prop_assert_eq!(&after.gates["G9"], &new);
        prop_assert_eq!(after.gates.len(), before.gates.len() + 1);
        prop_assert_eq!(after.output, Output::default());
    }

    #[test]
    fn any_text_is_a_file_or_errors_with_lines(text in ".{0,200}") {
        if let Err(errors) = GatesFile::parse(&text) {
            prop_assert!(errors.0.iter().all(|error| error.line >= 1 && !error.what.is_empty()));
        }
    }
}

#[test]
fn unknown_fields_of_a_registry_are_ignored_and_unknown_schemas_are_not() {
    let file = GatesFile::parse("schema = 1\nversion = \"1.4.0\"\n").unwrap();
    let mut content: serde_json::Value = serde_json::from_str(&registry(&file).to_json()).unwrap();
    content["invented"] = "later".into();
    content.as_object_mut().unwrap().remove("digest");
    content["digest"] = featureset::canonical::digest_of(&{
        let mut c = content.clone();
        c.as_object_mut().unwrap().remove("digest");
        c
    })
    .into();
    assert!(Registry::from_json(&content.to_string()).is_ok());
    content["schema"] = 2.into();
    let error = Registry::from_json(&content.to_string()).unwrap_err().to_string();
    assert_eq!(error, "its schema is 2, and this program reads 1 alone");
}

/// The digest of what a careless tool writes is right, too.
#[test]
fn what_is_twice_in_a_registry_is_named() {
    let gate =
        "[gate.A]\ndescription = \"d\"\nowner = \"o\"\ncontact = \"c\"\nenhancement = \"https://e\"\nsince = \"1.4\"\n";
    let file = GatesFile::parse(&format!("schema = 1\nversion = \"1.4.0\"\n{gate}")).unwrap();
    for (key, what) in [("gates", "gate A"), ("resolved", "set Default of profile default")] {
        let mut content: serde_json::Value = serde_json::from_str(&registry(&file).to_json()).unwrap();
        content.as_object_mut().unwrap().remove("digest");
        let list = content[key].as_array_mut().unwrap();
        list.push(list[0].clone());
        content["digest"] = featureset::canonical::digest_of(&content).into();
        let error = Registry::from_json(&content.to_string()).unwrap_err().to_string();
        assert_eq!(error, format!("it has {what} twice, and it cannot be told which is meant"));
    }
}
