//! From TOML to values: types, unknown keys and mandatory keys, each complaint with its line.

use std::collections::{BTreeMap, BTreeSet};

use featuregate::Version;
use toml_edit::{Document, Item, TableLike};

use super::{FileError, GatesFile, ONLY_PROFILE, Output, SCHEMA};
use crate::{gate::Gate, set::Set};

/// Errors so far, and where each key is.
#[derive(Default)]
pub(super) struct Findings {
    pub errors: Vec<FileError>,
    pub lines: BTreeMap<String, usize>,
}

impl Findings {
    /// Complains at the key or, if it is not written down, at the table it would be in.
    pub(super) fn add(&mut self, key: &str, what: impl Into<String>) {
        let mut at = key;
        let line = loop {
            match (self.lines.get(at), at.rsplit_once('.')) {
                (Some(line), _) => break *line,
                (None, Some((table, _))) => at = table,
                (None, None) => break 1,
            }
        };
        self.errors.push(FileError { line, key: key.to_owned(), what: what.into() });
    }
}

pub(super) fn read(text: &str) -> (Option<GatesFile>, Findings) {
    let mut findings = Findings::default();
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let line = error.span().map_or(1, |span| line_of(&newlines(text), span.start));
            let what = error.message().trim().to_owned();
            findings.errors.push(FileError { line, key: key_at(text, line), what });
            return (None, findings);
        }
    };
    let newlines = newlines(text);
    let mut root =
        Table { newlines: &newlines, path: String::new(), table: document.as_table(), findings: &mut findings };
    root.note_lines();
    let file = root.file();
    (Some(file), findings)
}

/// Where lines end: found once, as every key asks for its line.
fn newlines(text: &str) -> Vec<usize> {
    text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at).collect()
}

fn line_of(newlines: &[usize], at: usize) -> usize {
    newlines.partition_point(|newline| *newline < at) + 1
}

/// What the broken line seems to set, and in which table, so that also a complaint about syntax (a key twice) names the gate.
fn key_at(text: &str, line: usize) -> String {
    let lines: Vec<&str> = text.lines().take(line).map(str::trim).collect();
    let (broken, above) = lines.split_last().map_or(("", &[][..]), |(last, above)| (*last, above));
    let table = above.iter().rev().find_map(|line| line.strip_prefix('[')).map(key_in).unwrap_or_default();
    let key = key_in(broken.trim_start_matches('['));
    match (broken.starts_with('[') || table.is_empty(), key.is_empty()) {
        (true, _) => key,
        (false, true) => table,
        (false, false) => format!("{table}.{key}"),
    }
}

/// The key that a line begins with; nothing if it does not look like one.
fn key_in(line: &str) -> String {
    let key = line.split(['=', ']']).next().unwrap_or_default().trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '"');
    if key.chars().all(plain) { key.to_owned() } else { String::new() }
}

struct Table<'a> {
    newlines: &'a [usize],
    path: String,
    table: &'a dyn TableLike,
    findings: &'a mut Findings,
}

impl<'a> Table<'a> {
    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn note_lines(&mut self) {
        for (name, item) in self.table.iter() {
            let span = self.table.key(name).and_then(|key| key.span()).or_else(|| item.span());
            if let Some(span) = span {
                self.findings.lines.insert(self.path_of(name), line_of(self.newlines, span.start));
            }
        }
    }

    fn complain(&mut self, key: &str, what: impl Into<String>) {
        let path = self.path_of(key);
        self.findings.add(&path, what);
    }

    fn only(&mut self, known: &[&str]) {
        let unknown: Vec<String> =
            self.table.iter().map(|(key, _)| key.to_owned()).filter(|key| !known.contains(&key.as_str())).collect();
        for key in unknown {
            self.complain(&key, format!("unknown key; known here are {}", known.join(", ")));
        }
    }

    /// The tables within the table `key`, by name.
    fn each(&mut self, key: &str, mut with: impl FnMut(&str, &mut Table<'_>)) {
        let Some(mut inner) = self.inner(key) else { return };
        let names: Vec<String> = inner.table.iter().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            if let Some(mut table) = inner.inner(&name) {
                with(&name, &mut table);
            }
        }
    }

    fn inner(&mut self, key: &str) -> Option<Table<'_>> {
        let item = self.table.get(key)?;
        let Some(table) = item.as_table_like() else {
            self.complain(key, format!("must be a table, is {}", item.type_name()));
            return None;
        };
        let path = self.path_of(key);
        let mut inner = Table { newlines: self.newlines, path, table, findings: self.findings };
        inner.note_lines();
        Some(inner)
    }

    fn text(&mut self, key: &str) -> Option<String> {
        let item = self.table.get(key)?;
        let text = item.as_str().map(str::to_owned);
        if text.is_none() {
            self.complain(key, format!("must be a text, is {}", item.type_name()));
        }
        text
    }

    /// A text that must be there and say something.
    fn needed(&mut self, key: &str) -> String {
        let text = self.text(key);
        let absent = self.table.get(key).is_none();
        match text {
            Some(text) if text.trim().is_empty() => self.complain(key, "must not be empty"),
            Some(text) => return text,
            None if absent => self.complain(key, "is missing"),
            None => {}
        }
        String::new()
    }

    fn flag(&mut self, key: &str) -> bool {
        let Some(item) = self.table.get(key) else { return false };
        item.as_bool().unwrap_or_else(|| {
            self.complain(key, format!("must be true or false, is {}", item.type_name()));
            false
        })
    }

    fn texts(&mut self, key: &str) -> Vec<String> {
        let Some(item) = self.table.get(key) else { return Vec::new() };
        let texts = item.as_array().and_then(|list| list.iter().map(|v| v.as_str().map(str::to_owned)).collect());
        let texts: Vec<String> = texts.unwrap_or_else(|| {
            self.complain(key, format!("must be a list of texts, is {}", kind(item)));
            Vec::new()
        });
        for (i, text) in texts.iter().enumerate() {
            if texts[..i].contains(text) {
                self.complain(key, format!("has {text:?} twice"));
            }
        }
        texts
    }

    fn version(&mut self, key: &str) -> Option<Version> {
        let text = self.text(key)?;
        text.parse().map_err(|error: featuregate::VersionError| self.complain(key, error.to_string())).ok()
    }

    fn sets(&mut self, key: &str) -> BTreeSet<Set> {
        let mut sets = BTreeSet::new();
        for text in self.texts(key) {
            match text.parse::<Set>() {
                Ok(Set::Custom) => self
                    .complain(key, "CustomNoUpgrade has no list of its own: it is Default and what the cluster says"),
                Ok(_) if text.is_empty() => self.complain(key, "write \"Default\" for the default set"),
                Ok(set) => drop(sets.insert(set)),
                Err(_) => self.complain(
                    key,
                    format!(
                        "unknown feature set {text:?}: use Default, OKD, TechPreviewNoUpgrade or DevPreviewNoUpgrade"
                    ),
                ),
            }
        }
        sets
    }

    fn file(&mut self) -> GatesFile {
        self.only(&["schema", "version", "profiles", "output", "gate", "retired"]);
        self.schema();
        let version = self.needed("version");
        let mut profiles = self.texts("profiles");
        if profiles.is_empty() {
            profiles.push(ONLY_PROFILE.to_owned());
        }
        let output = self.inner("output").map(|mut table| table.output()).unwrap_or_default();
        let mut gates = BTreeMap::new();
        self.each("gate", |name, table| drop(gates.insert(name.to_owned(), table.gate(name))));
        GatesFile { version, profiles, output, gates, retired: self.retired() }
    }

    fn schema(&mut self) {
        match self.table.get("schema").map(Item::as_integer) {
            Some(Some(SCHEMA)) => {}
            None => self.complain("schema", format!("is missing; write schema = {SCHEMA}")),
            Some(_) => self.complain("schema", format!("must be {SCHEMA}, the only one there is")),
        }
    }

    fn output(&mut self) -> Output {
        self.only(&["rust", "go", "go_package", "manifests", "docs"]);
        Output {
            rust: self.text("rust"),
            go: self.text("go"),
            go_package: self.text("go_package"),
            manifests: self.text("manifests"),
            docs: self.text("docs"),
        }
    }

    fn retired(&mut self) -> BTreeMap<String, Version> {
        let Some(mut table) = self.inner("retired") else { return BTreeMap::new() };
        let names: Vec<String> = table.table.iter().map(|(name, _)| name.to_owned()).collect();
        names.into_iter().filter_map(|name| table.version(&name).map(|version| (name, version))).collect()
    }

    fn gate(&mut self, name: &str) -> Gate {
        self.only(&[
            "description",
            "owner",
            "contact",
            "enhancement",
            "since",
            "expires",
            "depends_on",
            "reversible",
            "sets",
            "profiles",
        ]);
        let mut profiles = BTreeMap::new();
        if let Some(mut table) = self.inner("profiles") {
            let names: Vec<String> = table.table.iter().map(|(name, _)| name.to_owned()).collect();
            for name in names {
                profiles.insert(name.clone(), table.sets(&name));
            }
        }
        if self.table.get("since").is_none() {
            self.complain("since", "is missing");
        }
        Gate {
            name: name.to_owned(),
            owner: self.needed("owner"),
            contact: self.needed("contact"),
            enhancement: self.needed("enhancement"),
            description: self.needed("description"),
            since: self.version("since").unwrap_or(Version::new(0, 0)),
            expires: self.version("expires"),
            depends_on: self.texts("depends_on").into_iter().collect(),
            reversible: self.flag("reversible"),
            sets: self.sets("sets"),
            profiles,
        }
    }
}

fn kind(item: &Item) -> String {
    match item.as_array().and_then(|list| list.iter().find(|value| !value.is_str())) {
        Some(value) => format!("a list with {} in it", value.type_name()),
        None => item.type_name().to_owned(),
    }
}
