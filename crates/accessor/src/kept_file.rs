//! A file that is kept: written when it does not say what it should, whoever changed or removed it.
//!
//! What is there is compared with what it said when it was right, so that looking again costs a read and nothing else; a file
//! that is right is not written. Of somebody else's config file only the list of gates is kept.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use featureset::Row;

use crate::sink::{Filter, Format, SinkError, render};

/// Larger ones are no files of gates, nor config files.
const BYTES_MAX: u64 = 16 << 20;
const ATTEMPTS_MAX: u32 = 5;

/// A file with the gates of a row. It is rewritten whenever its contents are wrong or it was
/// removed.
#[derive(Debug)]
pub struct KeptFile {
    path: PathBuf,
    filter: Filter,
    format: Format,
    /// What it said when it was right, and of which row.
    right: Option<(Row, Vec<u8>)>,
    /// Whose it was: one that was removed comes back as it was.
    access: Option<Access>,
}

/// The result of [`KeptFile::keep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The file was right and was not written.
    Right,
    /// The file was written for the first time, or because the row changed.
    Written,
    /// The file had been removed by someone else, and was written again.
    RestoredRemoved,
    /// Someone else had changed the kept part of the file, and it was written again.
    RestoredChanged,
}

/// Why [`KeptFile::keep`] failed. The file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The file exists and could not be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The kept file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The new contents could not be written, or could not get the owner and mode of the old file.
    #[error("failed to write {}", path.display())]
    Write {
        /// The kept file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not suitable: not a regular file, larger than 16 MiB, not UTF-8, or constantly
    /// rewritten by another program.
    #[error("{} cannot be kept: {why}", path.display())]
    Odd {
        /// The kept file.
        path: PathBuf,
        /// The reason, for the message.
        why: &'static str,
    },
    /// The config file does not parse, or has no place for the list of gates.
    #[error("{} cannot be kept", path.display())]
    Content {
        /// The kept file.
        path: PathBuf,
        /// The error of the config file.
        source: SinkError,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Access {
    mode: u32,
    user: u32,
    group: u32,
}

impl KeptFile {
    /// Describes the file at `path`. Nothing is read or written before [`KeptFile::keep`].
    pub fn new(path: &Path, filter: Filter, format: Format) -> KeptFile {
        KeptFile { path: path.to_owned(), filter, format, right: None, access: None }
    }

    /// Compares the file with `row`, and replaces it atomically if it differs.
    pub fn keep(&mut self, row: &Row) -> Result<Kept, KeepError> {
        for _ in 0..ATTEMPTS_MAX {
            if let Some(kept) = self.attempt(row, || ())? {
                return Ok(kept);
            }
        }
        Err(KeepError::Odd { path: self.path.clone(), why: "somebody writes it all the time" })
    }

    /// `None` if somebody else wrote the file meanwhile: it is looked at again, for what he wrote is not ours to lose.
    fn attempt(&mut self, row: &Row, meanwhile: impl FnOnce()) -> Result<Option<Kept>, KeepError> {
        let place = behind_links(&self.path);
        let there = self.read(&place)?;
        let was_right = self.right.as_ref().is_some_and(|(of, _)| of == row);
        if was_right && there == self.right.as_ref().map(|(_, text)| text.clone()) {
            return Ok(Some(Kept::Right));
        }
        let new = self.text(row, there.as_deref())?;
        let is_right = there.as_ref() == Some(&new);
        if !is_right {
            let path = self.path.clone();
            let failed = |source| KeepError::Write { path: path.clone(), source };
            let beside = beside(&place);
            write(&beside, &new, self.access).map_err(failed)?;
            meanwhile();
            let now = self.read(&place);
            if now.as_ref().ok() != Some(&there) {
                let _ = fs::remove_file(&beside);
                return now.map(|_| None);
            }
            put(&beside, &place).map_err(failed)?;
        }
        self.right = Some((row.clone(), new));
        Ok(Some(match (is_right, was_right, there) {
            (true, _, _) => Kept::Right,
            (false, false, _) => Kept::Written,
            (false, true, None) => Kept::RestoredRemoved,
            (false, true, Some(_)) => Kept::RestoredChanged,
        }))
    }

    /// `None` if it is not there.
    fn read(&mut self, place: &Path) -> Result<Option<Vec<u8>>, KeepError> {
        let odd = |why| KeepError::Odd { path: self.path.clone(), why };
        let failed = |source| KeepError::Read { path: self.path.clone(), source };
        let found = match fs::metadata(place) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(failed(source)),
        };
        // A pipe would never end.
        if !found.is_file() {
            return Err(odd("it is no plain file"));
        }
        let mut text = Vec::new();
        let file = File::open(place).map_err(failed)?;
        file.take(BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(odd("it is larger than 16 MiB"));
        }
        self.access = Some(Access { mode: found.mode() & 0o7777, user: found.uid(), group: found.gid() });
        Ok(Some(text))
    }

    fn text(&self, row: &Row, there: Option<&[u8]>) -> Result<Vec<u8>, KeepError> {
        let part = matches!(self.format, Format::Config(_));
        let there = match there.map(str::from_utf8) {
            Some(Err(_)) if part => return Err(KeepError::Odd { path: self.path.clone(), why: "it is not UTF-8" }),
            Some(Ok(text)) => Some(text),
            _ => None,
        };
        let rendered = render(row, &self.filter, &self.format, there);
        rendered.map(String::into_bytes).map_err(|source| KeepError::Content { path: self.path.clone(), source })
    }
}

/// The file that a link leads to, also while it is not there: a link of somebody's stays one.
fn behind_links(path: &Path) -> PathBuf {
    match (path.canonicalize(), fs::read_link(path)) {
        (Ok(place), _) => place,
        (Err(_), Ok(to)) => path.parent().map_or(to.clone(), |dir| dir.join(&to)),
        (Err(_), Err(_)) => path.to_owned(),
    }
}

/// The name has the process in it: two that keep two parts of one file do not write into each other's.
fn beside(place: &Path) -> PathBuf {
    let mut beside = place.as_os_str().to_owned();
    beside.push(format!(".new-{}", std::process::id()));
    beside.into()
}

/// Readers see the old file or the new one, whole, also after a power cut.
fn put(beside: &Path, place: &Path) -> io::Result<()> {
    fs::rename(beside, place).inspect_err(|_| drop(fs::remove_file(beside)))
}

/// Leaves nothing behind if it fails.
fn write(path: &Path, text: &[u8], access: Option<Access>) -> io::Result<()> {
    fill(path, text, access).inspect_err(|_| drop(fs::remove_file(path)))
}

fn fill(path: &Path, text: &[u8], access: Option<Access>) -> io::Result<()> {
    // A left-over of a process with this number; nobody's link is written through.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // What was for few is for no others in between.
    let mode = if access.is_some() { 0o600 } else { 0o666 };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    if let Some(access) = access {
        give(&file, access)?;
    }
    file.write_all(text)?;
    file.sync_all()
}

/// A file that the program it is for cannot read any more would be worse than an old one: what cannot be given is an error.
fn give(file: &File, to: Access) -> io::Result<()> {
    let is = file.metadata()?;
    if (is.uid(), is.gid()) != (to.user, to.group) {
        fchown(file, Some(to.user), Some(to.group)).map_err(|error| {
            let text = format!("it belongs to user {}, group {}, and cannot be given to them", to.user, to.group);
            io::Error::new(error.kind(), format!("{text}: {error}"))
        })?;
    }
    file.set_permissions(fs::Permissions::from_mode(to.mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Snapshot;

    struct World {
        dir: harness::TempDir,
        file: KeptFile,
    }

    impl World {
        fn new(format: Format) -> World {
            let dir = harness::tempdir();
            let file = KeptFile::new(&dir.path().join("file"), Filter::default(), format);
            World { dir, file }
        }

        fn config() -> World {
            World::new(Format::Config(vec!["gates".to_owned()]))
        }

        fn path(&self) -> PathBuf {
            self.dir.path().join("file")
        }

        fn put(&self, text: &str) {
            fs::write(self.path(), text).unwrap();
        }

        fn text(&self) -> String {
            fs::read_to_string(self.path()).unwrap()
        }

        fn keep(&mut self) -> Kept {
            self.file.keep(&row("A")).unwrap()
        }

        fn refused(&mut self) -> String {
            let error = self.file.keep(&row("A")).unwrap_err();
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            assert_eq!(fs::read_dir(self.dir.path()).unwrap().count(), 1, "no temporary file is left");
            error.to_string().replace(&self.dir.path().display().to_string(), "") + &cause
        }
    }

    fn row(on: &str) -> Row {
        Snapshot::fixed([on], ["Z"]).row
    }

    /// A value that changes with every write, even of equal text.
    fn stamp(path: &Path) -> (u64, i64) {
        let found = fs::metadata(path).unwrap();
        (found.ino(), found.mtime_nsec())
    }

    #[test]
    fn changes_by_others_are_reverted_once() {
        let mut world = World::new(Format::Args);
        assert_eq!(world.keep(), Kept::Written);
        let before = stamp(&world.path());
        assert_eq!((world.keep(), stamp(&world.path())), (Kept::Right, before));
        world.put("--feature-gates=A=false\n");
        assert_eq!(world.keep(), Kept::RestoredChanged);
        fs::remove_file(world.path()).unwrap();
        assert_eq!(world.keep(), Kept::RestoredRemoved);
        assert_eq!((world.text().as_str(), world.keep()), ("--feature-gates=A=true,Z=false\n", Kept::Right));
        fs::write(world.path(), b"\xff\xfe").unwrap();
        assert_eq!(world.keep(), Kept::RestoredChanged, "bytes that are not text are overwritten, too");
        assert_eq!(world.file.keep(&row("B")).unwrap(), Kept::Written, "a new row is not a restoration");
        assert_eq!(fs::read_dir(world.dir.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn only_the_list_of_a_config_file_is_kept() {
        let mut world = World::config();
        world.put("# theirs\nlog: 1\n");
        assert_eq!(world.keep(), Kept::Written);
        // A change outside the list needs no write.
        let theirs = world.text().replace("log: 1", "log: 2");
        world.put(&theirs);
        let before = stamp(&world.path());
        assert_eq!((world.keep(), stamp(&world.path())), (Kept::Right, before));
        // The list is removed and the rest is changed.
        world.put("# theirs\nlog: 3\n");
        assert_eq!(world.keep(), Kept::RestoredChanged);
        assert_eq!(world.text(), "# theirs\nlog: 3\ngates:\n- A=true\n- Z=false\n");
        fs::remove_file(world.path()).unwrap();
        assert_eq!((world.keep(), world.text().as_str()), (Kept::RestoredRemoved, "gates:\n- A=true\n- Z=false\n"));
    }

    /// A write by another program between the read and the rename must not be lost.
    #[test]
    fn concurrent_writes_are_not_lost() {
        let mut world = World::config();
        world.put("log: 1\n");
        let path = world.path();
        assert_eq!(world.file.attempt(&row("A"), || fs::write(path, "log: 2\n").unwrap()).unwrap(), None);
        assert_eq!(fs::read_dir(world.dir.path()).unwrap().count(), 1, "no temporary file is left");
        assert_eq!((world.keep(), world.text().as_str()), (Kept::Written, "log: 2\ngates:\n- A=true\n- Z=false\n"));
    }

    #[test]
    fn permissions_are_kept() {
        let mut world = World::new(Format::Json);
        world.put("");
        fs::set_permissions(world.path(), fs::Permissions::from_mode(0o640)).unwrap();
        let mode = |world: &World| fs::metadata(world.path()).unwrap().mode() & 0o7777;
        assert_eq!((world.keep(), mode(&world)), (Kept::Written, 0o640));
        fs::remove_file(world.path()).unwrap();
        assert_eq!((world.keep(), mode(&world)), (Kept::RestoredRemoved, 0o640), "also after a removal");
    }

    #[test]
    fn a_link_stays_a_link() {
        let mut world = World::new(Format::Args);
        std::os::unix::fs::symlink("real", world.path()).unwrap();
        assert_eq!(world.keep(), Kept::Written);
        fs::remove_file(world.dir.path().join("real")).unwrap();
        assert_eq!(world.keep(), Kept::RestoredRemoved);
        assert!(fs::symlink_metadata(world.path()).unwrap().is_symlink() && world.dir.path().join("real").is_file());
    }

    #[test]
    fn an_unreadable_file_is_not_changed() {
        let mut world = World::config();
        world.put("gates: [");
        assert!(world.refused().starts_with("/file cannot be kept: the config file cannot be read: it is not YAML"));
        world.put("a: 1\na: 2\n");
        assert!(world.refused().ends_with("line 2 column 1: duplicate mapping key: a"));
        fs::write(world.path(), b"a: \xff\n").unwrap();
        assert_eq!(world.refused(), "/file cannot be kept: it is not UTF-8");
        File::create(world.path()).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert_eq!(world.refused(), "/file cannot be kept: it is larger than 16 MiB");
        fs::remove_file(world.path()).unwrap();
        fs::create_dir(world.path()).unwrap();
        assert_eq!(world.refused(), "/file cannot be kept: it is no plain file");
    }
}
