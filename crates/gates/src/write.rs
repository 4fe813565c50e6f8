//! Files are written beside their places first, all of a change, and then put there: where a folder cannot be written or the disk
//! is full, everything stays as it was; and a reader sees the old file or the new one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    write_all(&[(path, text)])
}

pub(crate) fn write_all(files: &[(&Path, &str)]) -> Result<()> {
    let mut ready = Vec::new();
    for (path, text) in files {
        let place = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let beside = beside(&place);
        let written = write_beside(&place, &beside, text).with_context(|| failed(path));
        ready.push((beside, place));
        if written.is_err() {
            ready.iter().for_each(|(beside, _)| drop(fs::remove_file(beside)));
            return written;
        }
    }
    for ((beside, place), (path, _)) in ready.iter().zip(files) {
        fs::rename(beside, place).with_context(|| failed(path))?;
    }
    Ok(())
}

fn failed(path: &Path) -> String {
    format!("failed to write {}", path.display())
}

fn beside(place: &Path) -> PathBuf {
    let mut beside = place.as_os_str().to_owned();
    beside.push(".new");
    beside.into()
}

/// With the permissions of what it will replace.
fn write_beside(place: &Path, beside: &Path, text: &str) -> io::Result<()> {
    if let Some(dir) = place.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        fs::create_dir_all(dir)?;
    }
    fs::write(beside, text)?;
    match fs::metadata(place) {
        Ok(there) => fs::set_permissions(beside, there.permissions()),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn all_or_nothing() {
        let dir = harness::tempdir();
        let (one, other) = (dir.path().join("one"), dir.path().join("one/other"));
        fs::write(&one, "old").unwrap();
        fs::set_permissions(&one, fs::Permissions::from_mode(0o640)).unwrap();
        // The write of a file below another file fails, also for root, who may write anywhere.
        let error = format!("{:#}", write_all(&[(&one, "new"), (&other, "new")]).unwrap_err());
        assert!(error.starts_with(&format!("failed to write {}", other.display())), "{error}");
        assert_eq!(fs::read_to_string(&one).unwrap(), "old");
        write(&one, "new").unwrap();
        assert_eq!(fs::read_to_string(&one).unwrap(), "new");
        assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = harness::tempdir();
        let link = dir.path().join("link");
        fs::write(dir.path().join("real"), "old").unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        write(&link, "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(dir.path().join("real")).unwrap(), "new");
    }
}
