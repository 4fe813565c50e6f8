//! Runs the scenarios of `testdata/scripts`. `UPDATE_GOLDENFILES=1` rewrites what they print.

use crate::support;

use std::{fs, path::Path};

use support::script::Script;

#[test]
fn scripts() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/scripts");
    let mut files: Vec<_> = fs::read_dir(dir).expect("scripts").map(|e| e.expect("an entry").path()).collect();
    files.sort();
    assert!(files.len() > 5);
    let mut failed = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a script");
        let (commands, want) = text.split_once("---\n").unwrap_or((&text, ""));
        let mut script = Script::new();
        let mut got = String::new();
        for line in commands.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()) {
            got += &format!("> {line}\n{}\n", script.run(line));
        }
        if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
            fs::write(&file, format!("{commands}---\n{got}")).expect("writes the script");
        } else if got != want {
            failed.push(format!("{}:\n{}", file.display(), difference(&got, want)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn difference(got: &str, want: &str) -> String {
    let (mut got, mut want) = (got.lines(), want.lines());
    let mut command = "";
    loop {
        match (got.next(), want.next()) {
            (Some(g), Some(w)) if g == w => command = if g.starts_with('>') { g } else { command },
            (g, w) => return format!("{command}\n  got  {}\n  want {}", g.unwrap_or("end"), w.unwrap_or("end")),
        }
    }
}
