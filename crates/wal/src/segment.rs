//! Segments: their names, which of them a reader needs, opening and purging them.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::{
    disk::{Disk, DiskFile, OpenMode, OsDisk},
    error::Error,
};

/// `<seq>-<index>.wal`, both sixteen hexadecimal digits; ordered by sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) seq: u64,
    /// The first raft index that may be in the segment.
    pub(crate) index: u64,
}

impl Name {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (seq, index) = name.strip_suffix(".wal")?.split_once('-')?;
        Some(Self { seq: parse_hex16(seq)?, index: parse_hex16(index)? })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:016x}.wal", self.seq, self.index)
    }
}

/// Sixteen hexadecimal digits, without the sign that `from_str_radix` would allow.
pub(crate) fn parse_hex16(text: &str) -> Option<u64> {
    let digits = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// An open segment file, locked if it was opened for writing.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) name: Name,
    pub(crate) path: PathBuf,
    pub(crate) file: Box<dyn DiskFile>,
}

/// The segments in `dir`, oldest first; never empty.
pub(crate) fn list(disk: &dyn Disk, dir: &Path) -> Result<Vec<Name>, Error> {
    let mut names = Vec::new();
    for name in disk.list(dir).map_err(Error::io("list", dir))? {
        match Name::parse(&name) {
            Some(name) => names.push(name),
            // Spare files are there in every healthy directory.
            None if name.ends_with(".tmp") => {}
            None => tracing::warn!(path = name, "ignored file in WAL directory"),
        }
    }
    if names.is_empty() {
        return Err(Error::FileNotFound { dir: dir.into() });
    }
    names.sort_unstable();
    Ok(names)
}

/// The segments from the last one that begins at or before `index`, checked to have no hole.
pub(crate) fn select<'a>(dir: &Path, names: &'a [Name], index: u64) -> Result<&'a [Name], Error> {
    let Some(start) = names.iter().rposition(|name| name.index <= index) else {
        return Err(Error::NoSegmentFor { dir: dir.into(), index });
    };
    check_sequence(dir, names, start)?;
    Ok(&names[start..])
}

pub(crate) fn check_sequence(dir: &Path, names: &[Name], start: usize) -> Result<(), Error> {
    match names[start..].windows(2).find(|pair| pair[0].seq.checked_add(1) != Some(pair[1].seq)) {
        None => Ok(()),
        Some(pair) => Err(Error::SequenceGap { dir: dir.into(), start, before: pair[0].seq, after: pair[1].seq }),
    }
}

pub(crate) fn open(disk: &dyn Disk, dir: &Path, names: &[Name], mode: OpenMode) -> Result<Vec<Segment>, Error> {
    let open = |name: &Name| {
        let path = dir.join(name.to_string());
        let file = disk.open(&path, mode).map_err(Error::io("open", &path))?;
        Ok(Segment { name: *name, path, file })
    };
    names.iter().map(open).collect()
}

/// Removes the oldest segments of `dir` until `keep` remain, or until a segment is locked by its
/// member. Returns the removed paths.
pub fn purge(dir: &Path, keep: usize) -> Result<Vec<PathBuf>, Error> {
    purge_on(&OsDisk, dir, keep)
}

/// [`purge`] on a given disk.
pub fn purge_on(disk: &dyn Disk, dir: &Path, keep: usize) -> Result<Vec<PathBuf>, Error> {
    let names = list(disk, dir)?;
    let mut removed = Vec::new();
    for name in &names[..names.len().saturating_sub(keep)] {
        let path = dir.join(name.to_string());
        // Held until the file is gone, so that nobody opens it in between.
        let _lock = match disk.open(&path, OpenMode::Write).map_err(Error::io("lock", &path)) {
            Ok(lock) => lock,
            Err(Error::Locked { .. }) => break,
            Err(error) => return Err(error),
        };
        disk.remove_file(&path).map_err(Error::io("remove", &path))?;
        tracing::info!(path = %path.display(), "purged");
        removed.push(path);
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(seq: u64, index: u64) -> Name {
        Name { seq, index }
    }

    #[test]
    fn names() {
        assert_eq!(name(1, 0x1a).to_string(), "0000000000000001-000000000000001a.wal");
        assert_eq!(Name::parse("0000000000000001-000000000000001a.wal"), Some(name(1, 0x1a)));
        for bad in [
            "0.tmp",
            "1-1.wal",
            "0000000000000001-000000000000001a.wal.broken",
            "+000000000000001-000000000000001a.wal",
        ] {
            assert_eq!(Name::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn selection() {
        let names = [name(3, 10), name(4, 20), name(5, 30)];
        let dir = Path::new("wal");
        assert_eq!(select(dir, &names, 10).unwrap(), &names);
        assert_eq!(select(dir, &names, 29).unwrap(), &names[1..]);
        assert_eq!(select(dir, &names, 30).unwrap(), &names[2..]);
        assert!(matches!(select(dir, &names, 9), Err(Error::NoSegmentFor { index: 9, .. })));
        let hole = [name(0, 0), name(2, 20)];
        assert!(matches!(select(dir, &hole, 3), Err(Error::SequenceGap { before: 0, after: 2, .. })));
        assert!(select(dir, &hole, 20).is_ok());
    }
}
