//! Raw HTTP requests to a Kubernetes-style API, with the answers of the real server kept beside them.
//!
//! A [`Script`] is a file of `interop/requests`: steps that are sent one after the other to a server, and what Kubernetes answers.
//! [`run`] sends them and gives back the answers in a form without what differs from run to run; [`Report`] says which are
//! not as kept, and [`Known`] which of those are meant.

mod fill;
mod known;
mod layout;
mod normal;
mod report;
mod run;
mod script;
mod send;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

pub use known::Known;
pub use report::Report;
pub use run::run;
pub use script::{Script, Step};
pub use send::Target;

/// The users that scripts know, as a file for `--token-auth-file`.
pub const TOKENS: &str = "secret,admin,1,\"system:masters\"\nplain,bob,2,\"people\"\n";

/// All scripts of a directory, by name.
pub fn read_dir(dir: &Path) -> Result<Vec<(PathBuf, Script)>> {
    let entries = fs::read_dir(dir).with_context(|| format!("failed to read {}", dir.display()))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths?;
    paths.retain(|path| {
        path.extension().is_some_and(|end| end == "txt") && path.file_stem().is_some_and(|name| name != known::FILE)
    });
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path)?;
        let script = Script::parse(&text).with_context(|| format!("in {}", path.display()))?;
        Ok((path, script))
    };
    paths.into_iter().map(read).collect()
}
