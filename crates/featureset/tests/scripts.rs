//! Runs the scripts in `testdata/`: input, `---`, what must come out. `UPDATE_GOLDENFILES=1` rewrites the second half.

use std::{collections::BTreeSet, fs, path::Path};

use featureset::{
    Gate, GatesFile, Registry, Set,
    change::{ChangeError, Changed, Flip, Proof},
    change::{apply_edits, plan_add, plan_demote, plan_promote},
    exception::Exception,
    file::Edit,
    retire::{RetireFacts, plan_retire},
    transition::{TransitionError, check_transition},
};

fn testdata(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

fn run_dir(folder: &str, least: usize, run: impl Fn(&str) -> String) {
    let mut files: Vec<_> = fs::read_dir(testdata(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= least, "{folder} has only {} scripts", files.len());
    let mut failed = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let (input, want) = text.split_once("---\n").unwrap();
        let got = run(input);
        if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
            fs::write(&file, format!("{input}---\n{got}")).unwrap();
        } else if got != want {
            failed.push(format!("{}:\n{got}", file.display()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn files() {
    run_dir("file", 12, |text| match GatesFile::parse(text) {
        Ok(file) => format!("sound, {} gates\n", file.gates.len()),
        Err(errors) => format!("{errors}\n"),
    });
}

#[test]
fn changes() {
    run_dir("change", 10, |commands| {
        let mut script = Script::new();
        let lines = commands.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        lines.map(|line| script.run(line).map_or(String::new(), |said| format!("> {line}\n{said}\n"))).collect()
    });
}

struct Script {
    text: String,
    proof: Proof,
    facts: RetireFacts,
}

impl Script {
    fn new() -> Script {
        let text = fs::read_to_string(testdata("base.toml")).unwrap();
        Script { text, proof: Proof::default(), facts: RetireFacts::default() }
    }

    fn file(&self) -> GatesFile {
        GatesFile::parse(&self.text).unwrap()
    }

    fn run(&mut self, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let profiles = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        match words.as_slice() {
            ["add", name, sets @ ..] => {
                let planned = plan_add(&self.file(), newcomer(name, sets));
                Some(self.apply(planned))
            }
            ["promote", name, to, rest @ ..] => {
                Some(self.apply(plan_promote(&self.file(), name, to.parse().unwrap(), &profiles(rest), &self.proof)))
            }
            ["demote", name, to, rest @ ..] => {
                let to = (*to != "none").then(|| to.parse().unwrap());
                Some(self.apply(plan_demote(&self.file(), name, to, &profiles(rest))))
            }
            ["retire", name] => Some(self.apply(plan_retire(&self.file(), name, &self.facts))),
            ["show", name] => {
                let from = self.text.find(&format!("[gate.{name}]")).unwrap();
                Some(self.text[from..].split("\n\n").next().unwrap().to_owned())
            }
            ["evidence", profile, gate, runs, failed] => {
                self.prove(profile, gate, runs.parse().unwrap(), failed.parse().unwrap());
                None
            }
            ["exception", gate, set] => {
                let (gate, reason) = (gate.to_string(), "tests come next week".to_owned());
                self.proof.exceptions.push(Exception { gate, profile: None, set: set.parse().unwrap(), reason });
                None
            }
            ["release", version] => {
                self.facts.registries.push(Registry::of_file(&self.file(), version).unwrap());
                None
            }
            ["forget", version] => {
                self.facts.registries.retain(|registry| registry.version != *version);
                None
            }
            ["reference", place] => {
                self.facts.references.push(place.to_string());
                None
            }
            ["no-references"] => {
                self.facts.references.clear();
                None
            }
            other => panic!("unknown command {other:?}"),
        }
    }

    fn prove(&mut self, profile: &str, gate: &str, runs: u32, failed: u32) {
        let evidence = self.proof.by_profile.entry(profile.to_owned()).or_default();
        for run in 0..runs {
            let inner = if run < failed { "<failure/>" } else { "" };
            let case = |i| format!("<testcase name=\"t{i} [FeatureGate:{gate}]\">{inner}</testcase>");
            let cases: String = (0..5).map(case).collect();
            evidence.add(&format!("<testsuite id=\"{profile}-{run}-{failed}-{runs}\">{cases}</testsuite>")).unwrap();
        }
    }

    fn apply(&mut self, edits: Result<Vec<Edit>, ChangeError>) -> String {
        match edits.and_then(|edits| apply_edits(&self.text, &self.file(), &edits)) {
            Ok(Changed { text, flips, .. }) => {
                let diff = diff(&self.text, &text);
                self.text = text;
                diff + &flips.iter().map(flip).collect::<Vec<_>>().join("\n")
            }
            Err(error) => format!("refused: {error}"),
        }
    }
}

fn newcomer(name: &str, sets: &[&str]) -> Gate {
    Gate {
        name: name.to_owned(),
        owner: "network".to_owned(),
        contact: "network@example.com".to_owned(),
        enhancement: "https://example.com/enhancements/40".to_owned(),
        description: "New.".to_owned(),
        since: "1.4".parse().unwrap(),
        expires: None,
        depends_on: BTreeSet::new(),
        reversible: false,
        sets: sets.iter().map(|set| set.parse().unwrap()).collect(),
        profiles: Default::default(),
    }
}

fn flip(flip: &Flip) -> String {
    let say = |value: Option<bool>| value.map_or("unknown", |on| if on { "on" } else { "off" });
    format!("{} in {}, {}: {} -> {}", flip.gate, flip.profile, flip.set, say(flip.from), say(flip.to))
}

/// Lines that only one of the two has.
fn diff(old: &str, new: &str) -> String {
    let only = |a: &str, b: &str, mark: char| -> String {
        let there: Vec<&str> = b.lines().collect();
        a.lines().filter(|line| !there.contains(line)).map(|line| format!("{mark} {line}\n")).collect()
    };
    only(old, new, '-') + &only(new, old, '+')
}

#[test]
fn transitions() {
    let text = fs::read_to_string(testdata("transitions.txt")).unwrap();
    let set = |word: &str| match word {
        "absent" => None,
        "\"\"" => Some(Set::Default),
        name => Some(name.parse::<Set>().unwrap()),
    };
    let mut rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_whitespace());
    let columns: Vec<&str> = rows.next().unwrap().skip(1).collect();
    let mut checked = 0;
    for mut row in rows {
        let old = row.next().unwrap();
        for (new, want) in columns.iter().zip(row) {
            let got = match check_transition(set(old), set(new)) {
                Ok(()) => "ok",
                Err(TransitionError::Removed) => "removed",
                Err(TransitionError::OneWay(of)) if Some(of) == set(old) => "one-way",
                Err(TransitionError::OneWay(_)) => "one-way of another",
                Err(TransitionError::OkdToDefault) => "okd",
            };
            assert_eq!(got, want, "{old} -> {new}");
            checked += 1;
        }
    }
    assert_eq!(checked, 36);
}
