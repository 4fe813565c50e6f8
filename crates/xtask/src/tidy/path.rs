//! No file speaks of the machine it was written on: directories of one person, or where one build got its crates from.

use super::{File, Finding};

// Written in pieces, so that this file does not find itself.
const DIRS: [&str; 6] = [
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/tmp/pe", "ers"),
    concat!("/tmp/lgpe", "ers"),
];

/// Settings that choose another registry than the public one.
const REGISTRIES: [&str; 4] =
    [concat!("sparse", "+http"), concat!("[sour", "ce."), concat!("replace", "-with"), concat!("GOPROXY", "=http")];

/// The only source a lock file may name.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(super) fn check(file: &File) -> Vec<Finding> {
    file.lines().filter_map(|(number, line)| check_line(file, number, line)).collect()
}

fn check_line(file: &File, number: usize, line: &str) -> Option<Finding> {
    if let Some(dir) = DIRS.into_iter().find(|dir| names_dir(line, dir)) {
        let mend =
            "find the place at run time: from an environment variable, the manifest's directory or a temporary one";
        return Some(file.error(number, format!("names {dir}, a directory of one machine"), mend));
    }
    let foreign_source =
        file.path.ends_with("Cargo.lock") && line.starts_with("source = ") && !line.contains(CRATES_IO);
    // A table's header stands alone; in code the same letters are an index.
    let chosen = |word: &str| if word.starts_with('[') { line.starts_with(word) } else { line.contains(word) };
    let registry = REGISTRIES.into_iter().find(|word| chosen(word));
    let what = match registry {
        Some(word) => format!("chooses a registry ({word})"),
        None if foreign_source => format!("comes from elsewhere than crates.io: {line}"),
        None => return None,
    };
    Some(file.error(number, what, "leave the choice to the user's own cargo or go configuration"))
}

/// At the start of a path: `net/work/` or `https://host/work/` are not a directory of this machine.
fn names_dir(line: &str, dir: &str) -> bool {
    line.match_indices(dir).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '~' | '}' | ')' | '*'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{brief, file};

    #[test]
    fn directories_of_a_machine_are_found() {
        for dir in DIRS {
            let file = file("docs/a.md", &format!("fine\nsee `{dir}x`\n"));
            assert_eq!(brief(check(&file)), [format!("2: names {dir}, a directory of one machine")]);
        }
    }

    #[test]
    fn parts_of_other_paths_are_not() {
        for prefix in ["net", "~", "$HOME/..", "https://host.example"] {
            assert_eq!(check(&file("docs/a.md", &format!("{prefix}{}x\n", DIRS[1]))), []);
        }
    }

    #[test]
    fn registries_are_found() {
        for word in REGISTRIES {
            assert_eq!(brief(check(&file(".cargo/config.toml", word))), [format!("1: chooses a registry ({word})")]);
        }
        assert_eq!(check(&file("a.rs", &format!("let text = &line{}at..];", REGISTRIES[1]))), []);
        let lock = format!("source = \"{CRATES_IO}\"\nsource = \"git+https://x.example\"\n");
        let findings = brief(check(&file("Cargo.lock", &lock)));
        assert_eq!(findings, ["2: comes from elsewhere than crates.io: source = \"git+https://x.example\""]);
    }
}
