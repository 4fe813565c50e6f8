//! Files and directories, with what a crash needs: everything is synced where the order counts.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::SwapError;

pub(super) fn failed<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> SwapError + 'a {
    move |source| SwapError::Io { what, path: path.into(), source }
}

pub(super) fn create(dir: &Path) -> Result<(), SwapError> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed("create", dir))
}

pub(super) fn sync(dir: &Path) -> Result<(), SwapError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed("sync", dir))
}

/// A small file, whole or not at all.
pub(super) fn write_synced(path: &Path, contents: &[u8]) -> Result<(), SwapError> {
    let temporary = path.with_extension("tmp");
    let write = || {
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(contents)?;
        file.sync_all()
    };
    write().map_err(failed("write", path))?;
    fs::rename(&temporary, path).map_err(failed("rename to", path))?;
    path.parent().map_or(Ok(()), sync)
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<(), SwapError> {
    fs::rename(from, to).map_err(failed("rename to", to))
}

/// Removes a file that may be gone already.
pub(super) fn remove(path: &Path) -> Result<(), SwapError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(failed("remove", path)),
    }
}

/// Moves what is in a directory to another one, but for what `stays`, and syncs both. A second call does what is left.
pub(super) fn move_to(from: &Path, to: &Path, stays: impl Fn(&str) -> bool) -> Result<(), SwapError> {
    for path in list(from)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !stays(&name) {
            rename(&path, &to.join(&name))?;
        }
    }
    sync(to)?;
    sync(from)
}

/// Refuses files of `dir` that cannot be renamed into another directory of the same disk.
pub(super) fn check_movable(dir: &Path, moves: impl Fn(&str) -> bool) -> Result<(), SwapError> {
    let disk = fs::metadata(dir).map_err(failed("look at", dir))?.dev();
    for path in list(dir)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let found = fs::symlink_metadata(&path).map_err(failed("look at", &path))?;
        if moves(&name) && (!found.is_file() || found.dev() != disk) {
            return Err(SwapError::NotMovable { path });
        }
    }
    Ok(())
}

fn list(dir: &Path) -> Result<Vec<PathBuf>, SwapError> {
    let entries = fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(failed("list", dir))?;
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

pub(super) fn remove_all(dir: &Path) {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %dir.display(), %error, "failed to remove");
        }
        _ => {}
    }
}
