//! Rust files: they open with what they hold, stay of a size to read, have no leftovers, and leave the names of buckets
//! and keys to the schema.

use super::{File, Finding};

const LINES_MAX: usize = 900;
const LINES_LOOK: usize = 500;

// Written in pieces, so that this file does not find itself.
const LEFTOVERS: [&str; 3] = [concat!("to", "do!"), concat!("unimple", "mented!"), concat!("db", "g!")];

/// Names on disk that are no everyday words: as a whole literal they can only be meant as a bucket or a key.
const NAMES: [&str; 8] = [
    concat!("scheduled", "CompactRev"),
    concat!("finished", "CompactRev"),
    concat!("members", "_removed"),
    concat!("consistent", "_index"),
    concat!("conf", "State"),
    concat!("auth", "Enabled"),
    concat!("auth", "Roles"),
    concat!("auth", "Users"),
];

/// Names that are also used elsewhere, such as in JSON; as bytes they can only be meant for the file.
const NAMES_AS_BYTES: [&str; 6] = [
    concat!("auth", "Revision"),
    concat!("storage", "Version"),
    concat!("cluster", "Version"),
    concat!("down", "grade"),
    concat!("mem", "bers"),
    concat!("me", "ta"),
];

pub(super) fn check(file: &File) -> Vec<Finding> {
    if !file.path.ends_with(".rs") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    findings.extend(check_opening(file));
    findings.extend(check_size(file));
    let in_schema = file.path.starts_with("crates/storage/src/schema");
    let names_count = !in_schema && !is_test(&file.path);
    let tests_from = first_test_line(file);
    for (number, line) in file.lines() {
        let code = line.split("//").next().unwrap_or(line);
        findings.extend(leftover(code).map(|word| {
            file.error(
                number,
                format!("{word} is a leftover"),
                "write the code, or return an error that says what is missing",
            )
        }));
        if names_count && number < tests_from {
            findings.extend(bucket_name(code).map(|name| {
                let mend = "use the constant or function of storage::schema; add one there if it is missing";
                file.error(number, format!("names {name:?}, a bucket or key, outside the schema"), mend)
            }));
        }
    }
    findings
}

fn check_opening(file: &File) -> Option<Finding> {
    let mend = "begin with a `//!` line that says what the file holds";
    (!file.text.starts_with("//! ")).then(|| file.error(1, "does not open with what it holds", mend))
}

fn check_size(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    let what = format!("has {lines} lines");
    let mend = "look for its second noun and give that a file of its own";
    if lines >= LINES_MAX {
        return Some(file.error(lines, format!("{what}, and {LINES_MAX} is too many"), mend));
    }
    (lines > LINES_LOOK).then(|| file.warning(lines, what, mend))
}

/// `mytodo!` is somebody's own macro.
fn leftover(code: &str) -> Option<&'static str> {
    LEFTOVERS.into_iter().find(|word| {
        let whole = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        code.match_indices(word).any(|(at, _)| whole(at))
    })
}

fn bucket_name(code: &str) -> Option<&'static str> {
    let literal = NAMES.into_iter().find(|name| code.contains(&format!("\"{name}\"")));
    literal.or_else(|| NAMES_AS_BYTES.into_iter().find(|name| code.contains(&format!("b\"{name}\""))))
}

fn is_test(path: &str) -> bool {
    let in_dir = ["tests", "benches", "examples", "fuzz"].iter().any(|dir| path.split('/').any(|part| part == *dir));
    in_dir || path.ends_with("/tests.rs") || path.ends_with("_test.rs") || path.ends_with("_tests.rs")
}

/// Tests come last in our files.
fn first_test_line(file: &File) -> usize {
    let line = file.text.lines().position(|line| line.starts_with("#[cfg(test)]"));
    line.map_or(usize::MAX, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{brief, file};

    fn check_text(path: &str, text: &str) -> Vec<String> {
        brief(check(&file(path, text)))
    }

    #[test]
    fn files_open_with_what_they_hold() {
        assert_eq!(check_text("crates/a/src/lib.rs", "//! Things.\n"), [""; 0]);
        assert_eq!(check_text("crates/a/src/lib.rs", "use std::fmt;\n"), ["1: does not open with what it holds"]);
        assert_eq!(check_text("README.md", "# Any\n"), [""; 0]);
    }

    #[test]
    fn long_files_are_looked_at_and_very_long_ones_refused() {
        let lines = |count: usize| format!("//! Things.\n{}", "\n".repeat(count - 1));
        assert_eq!(check(&file("a.rs", &lines(500))), []);
        assert_eq!(check(&file("a.rs", &lines(501)))[0].severity, super::super::Severity::Warning);
        assert_eq!(check_text("a.rs", &lines(900)), ["900: has 900 lines, and 900 is too many"]);
    }

    #[test]
    fn leftovers_are_found_in_code_alone() {
        for word in LEFTOVERS {
            let text = format!("//! Things.\nfn a() {{ {word}() }}\n// {word}\nmy_{word}();\n");
            assert_eq!(check_text("a.rs", &text), [format!("2: {word} is a leftover")]);
        }
    }

    #[test]
    fn only_the_schema_names_buckets() {
        for name in NAMES {
            let text =
                format!("//! Things.\nconst A: &[u8] = b\"{name}\";\n#[cfg(test)]\nconst B: &str = \"{name}\";\n");
            let want = [format!("2: names {name:?}, a bucket or key, outside the schema")];
            assert_eq!(check_text("crates/mvcc/src/a.rs", &text), want);
            for path in ["crates/storage/src/schema/bucket.rs", "crates/storage/src/schema.rs", "crates/a/tests/b.rs"] {
                assert_eq!(check_text(path, &text), [""; 0]);
            }
        }
        for name in NAMES_AS_BYTES {
            let text = format!("//! Things.\nlet json = \"{name}\";\nlet key = b\"{name}\";\n");
            let want = [format!("3: names {name:?}, a bucket or key, outside the schema")];
            assert_eq!(check_text("crates/mvcc/src/a.rs", &text), want);
        }
    }
}
