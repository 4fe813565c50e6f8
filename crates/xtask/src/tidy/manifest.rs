//! `Cargo.toml` files: each crate takes the workspace's lints. Also reads dependencies, for the code map.
//!
//! They are read line by line, as all of ours are written one key a line; that also tells where a finding is.

use super::{File, Finding, crate_of_manifest};

pub(super) fn check(file: &File) -> Option<Finding> {
    let name = crate_of_manifest(&file.path)?;
    let inherits = keys(&file.text).any(|(_, section, key, value)| {
        matches!((section, key, value), ("lints", "workspace", "true") | ("", "lints.workspace", "true"))
    });
    let mend = "add the lines `[lints]` and `workspace = true`, so that one rule holds for all";
    (!inherits).then(|| file.error(1, format!("crate {name} does not take the workspace's lints"), mend))
}

/// The crates that a manifest depends on to build (tests aside), with their lines.
pub(super) fn dependencies(file: &File) -> impl Iterator<Item = (usize, &str)> {
    keys(&file.text).filter_map(|(line, section, key, value)| {
        // A table of its own, `[dependencies.x]`, names the crate in its header; that is not our way to write it, but
        // must not be a way around the check.
        let (table, header_name) = match section.rsplit_once("dependencies.") {
            Some((before, name)) => (format!("{before}dependencies"), Some(name)),
            None => (section.to_owned(), None),
        };
        let counts = table.ends_with("dependencies") && !table.ends_with("dev-dependencies");
        let name = header_name.unwrap_or_else(|| key.split('.').next().unwrap_or(key));
        let renamed = value.split_once("package = \"").and_then(|(_, rest)| rest.split('"').next());
        counts.then_some((line, renamed.unwrap_or(name)))
    })
}

/// Line, section, key and value of each `key = value`.
fn keys(text: &str) -> impl Iterator<Item = (usize, &str, &str, &str)> {
    let mut section = "";
    text.lines().enumerate().filter_map(move |(i, line)| {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = header.trim();
            return None;
        }
        let (key, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
        Some((i + 1, section, key.trim(), value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::file;

    #[test]
    fn lints_come_from_the_workspace() {
        let check = |text| check(&file("crates/a/Cargo.toml", text)).map(|finding| finding.what);
        assert_eq!(check("[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"), None);
        assert_eq!(check("lints.workspace = true\n"), None);
        let complaint = Some("crate a does not take the workspace's lints".to_owned());
        assert_eq!(check("[lints]\n# workspace = true\n"), complaint);
        assert_eq!(check("[lints]\nworkspace = false\n"), complaint);
        assert_eq!(check("[features]\nworkspace = true\n"), complaint);
    }

    #[test]
    fn the_root_manifest_is_no_crate() {
        assert_eq!(super::check(&file("Cargo.toml", "[workspace]\n")), None);
    }

    #[test]
    fn every_way_to_write_a_dependency_is_seen() {
        let text = "[dependencies]\na.workspace = true\nb = { path = \"../b\" }\nx = { package = \"c\" }\n\n\
                    [build-dependencies]\nd = \"1\"\n[target.'cfg(unix)'.dependencies]\ne = \"1\"\n\
                    [dependencies.f]\npath = \"../f\"\n[dev-dependencies]\ng = \"1\"\n[features]\nh = []\n";
        let file = file("crates/a/Cargo.toml", text);
        let found: Vec<_> = dependencies(&file).collect();
        assert_eq!(found, [(2, "a"), (3, "b"), (4, "c"), (7, "d"), (9, "e"), (11, "f")]);
    }
}
