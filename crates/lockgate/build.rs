//! Records the commit that the binary is built from, for `--version`. Without git, or outside of its own repository, there
//! is none.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=LOCKGATE_GIT_SHA");
    // Given by whoever builds from a tarball.
    if env::var_os("LOCKGATE_GIT_SHA").is_some() {
        return;
    }
    let Some(root) = own_repository() else { return };
    // Whatever moves HEAD writes one of these. A file that is not there would have cargo run this at every build.
    for name in ["HEAD", "logs/HEAD", "packed-refs"] {
        let path = git(&root, &["rev-parse", "--git-path", name]).map(|path| root.join(path));
        if let Some(path) = path.filter(|path| path.is_file()) {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    if let Some(sha) = git(&root, &["rev-parse", "--short=9", "HEAD"]) {
        println!("cargo:rustc-env=LOCKGATE_GIT_SHA={sha}");
    }
}

/// The workspace, if it is the top of a repository: sources unpacked inside of another have no commit of their own.
fn own_repository() -> Option<PathBuf> {
    let crate_dir = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let root = crate_dir.ancestors().nth(2)?.canonicalize().ok()?;
    let top = PathBuf::from(git(&root, &["rev-parse", "--show-toplevel"])?);
    (top.canonicalize().ok()? == root).then_some(root)
}

fn git(dir: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(dir).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
