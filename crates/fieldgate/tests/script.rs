//! The language of the scripts in `testdata/`: a line that begins at the margin is a command, lines that are indented
//! go on with it. Commands set something or run something; what runs is echoed with what came of it.

use std::fmt::Write as _;

use fieldgate::{Declaration, Gates, Gating, Part, Path, Write, raises_generation, resolve, validate, validate_crd};
use serde_json::{Value, json};

const AT: &str = "spec.customFeatureGates";

/// Everything that commands set.
#[derive(Clone)]
struct Scene {
    stanza: Value,
    schema: Value,
    scale: Value,
    stored: Option<Value>,
    read: Option<Value>,
    sent: Option<Value>,
    part: Part,
    before: Value,
    value: Value,
    old: Option<Box<Scene>>,
    crd: Option<Value>,
}

pub(crate) fn run(script: &str) -> String {
    let schema = include_str!("../testdata/schema.json");
    let mut scene = Scene {
        stanza: json!({ "featureGates": [] }),
        schema: serde_json::from_str(schema).expect("schema.json is JSON"),
        scale: Value::Null,
        stored: None,
        read: None,
        sent: None,
        part: Part::Whole,
        before: json!([]),
        value: json!({}),
        old: None,
        crd: None,
    };
    let mut out = String::new();
    for command in commands(script) {
        let (word, rest) = command.split_once(' ').unwrap_or((&command, ""));
        if !scene.set(word, rest.trim()) {
            let echo = if rest.contains('\n') { word } else { command.as_str() };
            write!(out, "> {echo}\n{}", scene.run(word, rest.trim())).expect("a string takes all");
        }
    }
    out
}

fn commands(script: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for line in script.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        match commands.last_mut().filter(|_| line.starts_with(' ')) {
            Some(last) => last.extend(["\n", line]),
            None => commands.push(line.to_owned()),
        }
    }
    commands
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn path(text: &str) -> Path {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

impl Scene {
    /// Whether the command was one that sets something.
    fn set(&mut self, word: &str, rest: &str) -> bool {
        match word {
            "gate" => self.set_gate(rest),
            "gates" => self.stanza = json(rest),
            "component" => self.stanza["component"] = rest.into(),
            "schema" => self.schema = json(rest),
            "scale" => self.scale = json(rest),
            "stored" => self.stored = (rest != "none").then(|| json(rest)),
            // These two count for the next write alone.
            "read" => self.read = Some(json(rest)),
            "sent" => self.sent = Some(json(rest)),
            "part" => self.part = part(rest),
            "before" => self.before = json(rest),
            "value" => self.value = json(rest),
            "old" => self.old = Some(Box::new(self.clone())),
            "old-crd" => self.crd = Some(json(rest)),
            _ => return false,
        }
        true
    }

    /// `NAME STAGE on|off|unset PATH… [| WARNING]`; a gate of that name is replaced.
    fn set_gate(&mut self, rest: &str) {
        let (rest, warning) = rest.split_once(" | ").map_or((rest, None), |(rest, text)| (rest, Some(text)));
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [name, stage, state, paths @ ..] = words.as_slice() else { panic!("gate {rest}: too few words") };
        let mut gate = json!({ "name": name, "preRelease": stage, "fieldPaths": paths });
        if *state != "unset" {
            gate["enabled"] = (*state == "on").into();
        }
        if let Some(text) = warning {
            gate["fieldDeprecationWarning"] = text.into();
        }
        let gates = self.stanza["featureGates"].as_array_mut().expect("a list of gates");
        match gates.iter_mut().find(|other| other["name"] == gate["name"]) {
            Some(other) => *other = gate,
            None => gates.push(gate),
        }
    }

    fn run(&mut self, word: &str, rest: &str) -> String {
        match word {
            "create" => self.write(None, json(rest)),
            "update" => self.write(self.stored.clone(), json(rest)),
            "defaults" => {
                let mut schema = json(rest);
                let changed = self.gating().strip_defaults(&mut schema);
                format!("{schema}{}\n", if changed { "" } else { " (unchanged)" })
            }
            "after" => match self.gating().freeze_managed_fields(
                self.before.as_array().expect("a list"),
                json(rest).as_array().expect("a list"),
                &self.value,
            ) {
                Ok(entries) => entries.iter().map(|entry| format!("{entry}\n")).collect(),
                Err(error) => format!("error: {error}\n"),
            },
            "unfrozen" => match self.gating().unfrozen(&json(rest)) {
                Ok(set) => format!("{set}\n"),
                Err(error) => format!("error: {error}\n"),
            },
            "publish" => {
                let mut schema = json(rest);
                self.gates().publish(&mut schema, "example.com");
                format!("{schema}\n")
            }
            "status" => format!("{}\n", self.gates().status()),
            "path" => match rest.parse::<Path>() {
                Ok(path) => format!("{path}\n"),
                Err(error) => format!("error: {error}\n"),
            },
            "resolve" => match resolve(&self.schema, &path(rest)) {
                Ok(way) => format!("{}\n", way[way.len() - 1]),
                Err(error) => format!("error: {error}\n"),
            },
            "parse" => match Gates::parse(&json(rest), AT) {
                Ok(gates) => format!("{}\n", gates.status()),
                Err(errors) => errors.0.iter().map(|error| format!("error: {error}\n")).collect(),
            },
            "validate" => {
                let old = self.old.as_deref().map(Scene::declaration);
                told(&validate(&self.declaration(), old.as_ref()))
            }
            "crd" => told(&validate_crd(&json(rest), self.crd.as_ref())),
            _ => panic!("{word} is no command"),
        }
    }

    fn write(&mut self, stored: Option<Value>, new: Value) -> String {
        let read = self.read.take().or_else(|| stored.clone());
        let sent = self.sent.take();
        let part = std::mem::take(&mut self.part);
        let write = Write { stored: stored.as_ref(), read: read.as_ref(), sent: sent.as_ref(), part };
        let written = self.gating().write(&write, new);
        let generation = match &stored {
            None => "1",
            Some(stored) if raises_generation(stored, &written.value, true) => "+1",
            Some(_) => "unchanged",
        };
        let mut out = format!("{}\ngeneration {generation}\n", written.value);
        for warning in &written.warnings {
            writeln!(out, "warning: {warning}").expect("a string takes all");
        }
        out
    }

    fn gates(&self) -> Gates {
        Gates::parse(&self.stanza, AT).expect("gates that can be read")
    }

    fn gating(&self) -> Gating {
        Gating::new(&self.gates(), &self.schema)
    }

    fn declaration(&self) -> Declaration<'_> {
        Declaration { stanza: &self.stanza, at: AT, schema: &self.schema, scale: &self.scale }
    }
}

fn part(text: &str) -> Part {
    match text.split_once(' ').expect("`only PATH` or `all-but PATH`") {
        ("only", rest) => Part::Only(path(rest)),
        ("all-but", rest) => Part::AllBut(path(rest)),
        (other, _) => panic!("part {other}"),
    }
}

fn told(verdict: &fieldgate::Verdict) -> String {
    let errors = verdict.errors.iter().map(|error| format!("error: {error}\n"));
    let warnings = verdict.warnings.iter().map(|text| format!("warning: {text}\n"));
    let all: String = errors.chain(warnings).collect();
    if all.is_empty() { "accepted\n".to_owned() } else { all }
}
