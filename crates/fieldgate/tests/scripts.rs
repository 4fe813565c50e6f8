//! Runs the scripts in `testdata/`: commands, `---`, what must come out. `UPDATE_GOLDENFILES=1` rewrites the second half.

use std::{
    fs,
    path::{Path, PathBuf},
};

use test_case::test_case;

#[test_case("path")]
#[test_case("write")]
#[test_case("warning")]
#[test_case("defaults")]
#[test_case("ownership")]
#[test_case("validate")]
#[test_case("publish")]
fn scripts(dir: &str) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(dir);
    let mut files: Vec<PathBuf> = fs::read_dir(&dir).expect("a directory").map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} has no scripts", dir.display());
    let wrong: Vec<String> = files.iter().filter_map(|file| run_file(file)).collect();
    assert!(wrong.is_empty(), "{}\n(UPDATE_GOLDENFILES=1 rewrites them)", wrong.join("\n"));
}

/// What is wrong, if anything.
fn run_file(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).expect("a readable script");
    let (script, expected) = text.split_once("\n---\n").unwrap_or((text.trim_end(), ""));
    let actual = crate::script::run(script);
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        fs::write(file, format!("{script}\n---\n{actual}")).expect("a writable script");
        return None;
    }
    (actual != expected).then(|| format!("{}\nexpected:\n{expected}\nactual:\n{actual}", file.display()))
}
