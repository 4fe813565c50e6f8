//! Dependencies among our own crates against the code map in `ARCHITECTURE.md`: a dependency is hard to take back.
//!
//! The map is the Markdown table whose header is `| crate | what it is | may use |`. One crate a row, in backticks; the
//! last cell lists crates separated by spaces or commas, or says `–` for none or `all`. What is listed may be used, it
//! need not be. Tests may use more: dev-dependencies are not looked at.

use std::collections::BTreeMap;

use super::{File, Finding, Tree, manifest};

const MAP: &str = "ARCHITECTURE.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.get(MAP) else {
        let missing = File { path: MAP.to_owned(), text: String::new() };
        return vec![missing.error(1, "the file with the code map is missing", "write it, with a row for every crate")];
    };
    let crates: BTreeMap<&str, &File> = tree.crates().collect();
    let (map, mut findings) = read_map(file);
    for (name, row) in &map {
        check_row(file, name, row, &crates, &mut findings);
    }
    for (name, manifest) in crates {
        match map.get(name) {
            Some(row) => check_dependencies(name, row, manifest, &map, &mut findings),
            None => findings.push(manifest.error(
                1,
                format!("crate {name} is not in the code map"),
                format!("add a row to the table in {MAP}: | `{name}` | what it is | the crates it may use |"),
            )),
        }
    }
    findings
}

struct Row<'a> {
    line: usize,
    may_use: Vec<&'a str>,
}

impl Row<'_> {
    fn allows(&self, name: &str) -> bool {
        self.may_use.iter().any(|allowed| *allowed == name || *allowed == "all")
    }
}

fn read_map(file: &File) -> (BTreeMap<&str, Row<'_>>, Vec<Finding>) {
    let (mut map, mut findings) = (BTreeMap::new(), Vec::new());
    let mut lines = file.lines().skip_while(|(_, line)| !is_header(line)).peekable();
    if lines.peek().is_none() {
        let mend = "begin the code map with the header | crate | what it is | may use |";
        findings.push(file.error(1, "found no code map", mend));
    }
    for (line, text) in lines.skip(2).take_while(|(_, text)| text.starts_with('|')) {
        let cells = cells(text);
        let name = cells.first().and_then(|cell| cell.strip_prefix('`')?.strip_suffix('`'));
        let (Some(name), [_, _, may_use]) = (name.filter(|name| !name.contains('`')), cells.as_slice()) else {
            let mend = "write | `crate` | what it is | crates it may use |, one crate a row";
            findings.push(file.error(line, "cannot read this row of the code map", mend));
            continue;
        };
        let may_use = may_use.split([' ', ',', '`']).filter(|word| !matches!(*word, "" | "–" | "-" | "—")).collect();
        if map.insert(name, Row { line, may_use }).is_some() {
            findings.push(file.error(line, format!("crate {name} has a second row"), "keep one row a crate"));
        }
    }
    (map, findings)
}

fn is_header(line: &str) -> bool {
    matches!(cells(line).as_slice(), ["crate", _, last] if last.starts_with("may use"))
}

fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inner.map(|inner| inner.split('|').map(str::trim).collect()).unwrap_or_default()
}

fn check_row(file: &File, name: &str, row: &Row<'_>, crates: &BTreeMap<&str, &File>, findings: &mut Vec<Finding>) {
    if !crates.contains_key(name) {
        let what = format!("the code map lists {name}, but there is no crates/{name}");
        findings.push(file.error(row.line, what, "remove the row, or add the crate"));
    }
    for used in row.may_use.iter().filter(|used| **used != "all" && !crates.contains_key(**used)) {
        let what = format!("{name} may use {used}, but there is no crates/{used}");
        findings.push(file.error(row.line, what, "list crates by the names of their directories"));
    }
}

fn check_dependencies(
    name: &str,
    row: &Row<'_>,
    manifest: &File,
    map: &BTreeMap<&str, Row<'_>>,
    findings: &mut Vec<Finding>,
) {
    for (line, used) in manifest::dependencies(manifest) {
        if map.contains_key(used) && !row.allows(used) {
            let what = format!("{name} uses {used}, which the code map does not allow");
            let mend = format!("do without, or argue for it in review and add {used} to line {} of {MAP}", row.line);
            findings.push(manifest.error(line, what, mend));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{brief, file};

    const HEAD: &str = "# Map\n\n| crate | what it is | may use (ours) |\n|---|---|---|\n";

    fn check_map(rows: &str, manifests: &[(&str, &str)]) -> Vec<String> {
        let mut files = vec![file(MAP, &format!("{HEAD}{rows}\n\n| crate | another table |\n"))];
        let manifest = |(name, text): &(&str, &str)| file(&format!("crates/{name}/Cargo.toml"), text);
        files.extend(manifests.iter().map(manifest));
        brief(check(&Tree { files }))
    }

    #[test]
    fn what_is_listed_may_be_used() {
        let rows = "| `a` | base | – |\n| `b` | top | `a` |\n| `c` | binary | all |";
        let b = "[dependencies]\na.workspace = true\nserde = \"1\"\n";
        let c = "[dependencies]\na.workspace = true\nb.workspace = true\n";
        assert_eq!(check_map(rows, &[("a", ""), ("b", b), ("c", c)]), [""; 0]);
    }

    #[test]
    fn what_is_not_listed_may_not() {
        let a =
            "[package]\nname = \"a\"\n\n[dependencies]\nb.workspace = true\n\n[dev-dependencies]\nc.workspace = true\n";
        let rows = "| `a` | base | – |\n| `b` | top | a, c |\n| `c` | x | - |";
        let findings = check_map(rows, &[("a", a), ("b", ""), ("c", "")]);
        assert_eq!(findings, ["5: a uses b, which the code map does not allow"]);
    }

    #[test]
    fn map_and_directories_agree() {
        let findings = check_map("| `a` | x | gone |\n| `b` | x | – |\n| `b` | x | – |", &[("b", ""), ("c", "")]);
        assert_eq!(
            findings,
            [
                "7: crate b has a second row",
                "5: the code map lists a, but there is no crates/a",
                "5: a may use gone, but there is no crates/gone",
                "1: crate c is not in the code map",
            ]
        );
    }

    #[test]
    fn unreadable_rows_and_a_missing_table_are_told() {
        let findings = check_map("| `a`, `b` | x | – |", &[]);
        assert_eq!(findings, ["5: cannot read this row of the code map"]);
        assert_eq!(brief(check(&Tree { files: vec![file(MAP, "# Nothing\n")] })), ["1: found no code map"]);
        assert_eq!(brief(check(&Tree { files: vec![] })), ["1: the file with the code map is missing"]);
    }
}
