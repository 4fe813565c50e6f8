//! What both kinds of scripts share: commands above a line, what they print below it.

use std::{fs, path::Path};

/// Runs every script of a folder of `testdata`, of which there are more than `least`, each in a state of its own. A command
/// that only sets the scene returns nothing. `UPDATE_GOLDENFILES=1` rewrites what the scripts print.
pub(crate) fn run_scripts<S: Default>(
    folder: &str,
    least: usize,
    run: impl Fn(&mut S, &str, &[&str]) -> Option<String>,
) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(folder);
    let mut files: Vec<_> = fs::read_dir(dir).expect("scripts").map(|e| e.expect("an entry").path()).collect();
    files.sort();
    assert!(files.len() > least);
    let mut failed = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a script");
        let (commands, want) = text.split_once("---\n").unwrap_or((&text, ""));
        let mut script = S::default();
        let mut got = String::new();
        for line in commands.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()) {
            let words: Vec<_> = line.split_whitespace().collect();
            if let Some(said) = run(&mut script, words[0], &words[1..]) {
                got += &format!("> {line}\n{said}\n");
            }
        }
        if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
            fs::write(&file, format!("{commands}---\n{got}")).expect("writes the script");
        } else if got != want {
            failed.push(format!("{}:\n{got}", file.display()));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
