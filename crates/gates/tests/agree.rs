//! Equal results: the row that the controller writes, the row that `render` puts into a manifest, the shipped manifest of a
//! set, and the changes that `plan` shows.

use std::{collections::BTreeSet, fs, path::Path};

use featureset::{GatesFile, Registry, Row, Set, object::FeatureGate, set::LISTED, yaml::objects};
use featuretest::Cluster;
use proptest::prelude::*;
use serde_json::{Value, json};

const VERSION: &str = "1.4.0";

/// Gates `G0` to `G5`, each off or in a set and all wider ones.
fn file() -> impl Strategy<Value = String> {
    let set = prop::option::of(prop::sample::select(LISTED.to_vec()));
    prop::collection::vec(set, 6).prop_map(|sets| {
        let mut text = format!("schema = 1\nversion = \"{VERSION}\"\n[output]\nmanifests = \"manifests\"\n");
        for (i, set) in sets.into_iter().enumerate() {
            let sets = set.map(Set::with_wider).unwrap_or_default();
            let names: Vec<&str> = sets.into_iter().map(Set::name).collect();
            text += &format!(
                "[gate.G{i}]\ndescription = \"d\"\nowner = \"o\"\ncontact = \"c\"\nenhancement = \"https://e\"\nsince = \"1.4\"\n\
                 sets = {names:?}\n"
            );
        }
        text
    })
}

/// A set, and the gates to turn on and off if it is the custom one.
fn choice() -> impl Strategy<Value = (Set, [Vec<String>; 2])> {
    let names = prop::collection::btree_set(0..6usize, 0..4);
    let sets = prop::sample::select(vec![Set::Default, Set::Okd, Set::TechPreview, Set::DevPreview, Set::Custom]);
    (sets, names.clone(), names).prop_map(|(set, on, off)| {
        let names = |of: BTreeSet<usize>| of.into_iter().map(|i| format!("G{i}")).collect::<Vec<_>>();
        let lists = [names(on.clone()), names(off.difference(&on).copied().collect())];
        (set, if set == Set::Custom { lists } else { [Vec::new(), Vec::new()] })
    })
}

fn answer(dir: &Path, line: &str) -> String {
    let words = line.split_whitespace().map(str::to_owned);
    let start = ["gates".to_owned(), "--file".to_owned(), dir.join("gates.toml").display().to_string()];
    let (text, good) = gates::answer(start.into_iter().chain(words)).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert!(good, "{line}: {text}");
    text
}

fn row_of(path: &Path) -> Row {
    let object: Value = objects(&fs::read_to_string(path).unwrap()).unwrap().remove(0);
    serde_json::from_value::<FeatureGate>(object).unwrap().row(VERSION).unwrap()
}

fn of_controller(text: &str, spec: &Value) -> Row {
    let own = Registry::of_file(&GatesFile::parse(text).unwrap(), VERSION).unwrap();
    let mut cluster = Cluster::default();
    cluster.history(VERSION, &[VERSION]);
    cluster.settle(&own);
    cluster.choose(spec.clone());
    cluster.settle(&own);
    cluster.feature_gate.unwrap().row(VERSION).unwrap()
}

/// The names after a word in the plan.
fn named(plan: &str, word: &str) -> BTreeSet<String> {
    let line = plan.lines().find_map(|line| line.trim().strip_prefix(word));
    line.into_iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_owned()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn commands_and_controller_agree(text in file(), (set, [on, off]) in choice()) {
        let dir = harness::tempdir();
        fs::write(dir.path().join("gates.toml"), &text).unwrap();
        let custom = json!({"enabled": on, "disabled": off});
        let mut spec = json!({"featureSet": set.wire()});
        if set == Set::Custom {
            spec["customNoUpgrade"] = custom;
        }
        let row = of_controller(&text, &spec);

        let manifest = dir.path().join("gate.yaml");
        let object = json!({"kind": "FeatureGate", "metadata": {"name": "cluster"}, "spec": spec});
        fs::write(&manifest, object.to_string()).unwrap();
        answer(dir.path(), &format!("render --payload-version {VERSION} --manifest {}", manifest.display()));
        prop_assert_eq!(&row_of(&manifest), &row);

        answer(dir.path(), "render");
        let shipped = |set: Set| row_of(&dir.path().join(format!("manifests/featuregates/featureGate-1-default-{set}.yaml")));
        if set != Set::Custom {
            prop_assert_eq!(&shipped(set), &row);
        }

        let list = |flag: &str, names: &[String]| if names.is_empty() { String::new() } else { format!(" --{flag} {}", names.join(",")) };
        let line = format!("plan --to {set}{}{}", list("enable", &on), list("disable", &off));
        let (plan, default) = (answer(dir.path(), &line), shipped(Set::Default).enabled);
        prop_assert_eq!(named(&plan, "turned on:"), row.enabled.difference(&default).cloned().collect());
        prop_assert_eq!(named(&plan, "turned off:"), default.difference(&row.enabled).cloned().collect());
    }
}
