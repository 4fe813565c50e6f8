//! Looks for code that still asks for a gate.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use featureset::{
    definition::{ANNOTATION, Follow, Gate, PreRelease, follow, gates, name_of},
    yaml::objects,
};
use serde_json::Value;

/// What is read as code. Docs and change logs may go on speaking of a gate.
const CODE: [&str; 17] =
    ["rs", "go", "py", "js", "ts", "tsx", "java", "kt", "c", "h", "cc", "cpp", "hpp", "cs", "rb", "sh", "swift"];
const SKIPPED: [&str; 4] = ["target", "node_modules", "vendor", "dist"];

const MANIFESTS: [&str; 3] = ["yaml", "yml", "json"];

/// Lines that name the gate, by one of its names, as `path:line`; and definitions whose field gates follow it, which would fall
/// back to their defaults.
pub(crate) fn references(dir: &Path, names: &[String], except: &[PathBuf]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        let entries = fs::read_dir(&dir).with_context(|| format!("failed to read {}", dir.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !path.is_symlink() && !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                dirs.push(path);
            } else if path.is_file() && !except.iter().any(|other| same(other, &path)) {
                match () {
                    () if has_extension(&path, &CODE) => found.extend(lines(&path, names)),
                    () if has_extension(&path, &MANIFESTS) => found.extend(definitions(&path, names)),
                    () => {}
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

fn has_extension(path: &Path, all: &[&str]) -> bool {
    path.extension().is_some_and(|extension| all.iter().any(|one| extension == *one))
}

/// Definitions that follow and have the gate.
fn definitions(path: &Path, names: &[String]) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    // Other manifests are not ours to judge, and some are templates.
    let all = if text.contains(ANNOTATION) { objects(&text).unwrap_or_default() } else { Vec::new() };
    let found = all.iter().filter(|object| follows(object, names));
    found.map(|object| format!("{} ({})", path.display(), name_of(object))).collect()
}

/// Whether a definition follows and has the gate. A stable one is on for ever and needs nobody.
pub(crate) fn follows(definition: &Value, names: &[String]) -> bool {
    let needs = |gate: &Gate| names.contains(&gate.name) && gate.pre_release != PreRelease::Stable;
    follow(definition) == Follow::FeatureSets && gates(definition).iter().any(needs)
}

fn same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// A file that is no text names no gate.
fn lines(path: &Path, names: &[String]) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().enumerate().filter(|(_, line)| names.iter().any(|name| has_word(line, name)));
    lines.map(|(i, _)| format!("{}:{}", path.display(), i + 1)).collect()
}

fn has_word(line: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word)
        .any(|(at, _)| !part(line[..at].chars().next_back()) && !part(line[at + word.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::has_word;

    #[test]
    fn words_are_whole() {
        assert!(has_word("if on(\"FastPath\") {", "FastPath") && has_word("Gate::FastPath", "FastPath"));
        assert!(!has_word("FastPath2 MyFastPath _FastPath", "FastPath"));
    }
}
