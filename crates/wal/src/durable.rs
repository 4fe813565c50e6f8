//! Making durable what was read from a log, before anybody relies on it.
//!
//! The page cache may be the only place that has the end of the log: the process that wrote it died before its sync, or
//! the sync failed and ended it. Raft takes every entry of an open log as stable, and later records follow on it.
//!
//! A sync alone is not enough. After a failed one ext4 and XFS mark the pages as clean although they are not on disk:
//! the next sync skips them and succeeds. Writing the same bytes again makes the pages dirty, whatever the file system
//! did. Only the last segment can have such pages, because a cut syncs the one before.

use std::{path::Path, slice};

use crate::{
    disk::Disk,
    error::Error,
    read::{self, Tail},
    segment::Segment,
};

const CHUNK_BYTES: usize = 1 << 20;

/// Writes the last segment up to `end` again and syncs it, its name and the name of the directory. A power failure
/// meanwhile leaves each sector as it was or with the same bytes.
pub(crate) fn make_durable(disk: &dyn Disk, dir: &Path, tail: &Segment, end: &Tail) -> Result<(), Error> {
    rewrite(tail, end.offset)?;
    tail.file.sync_data().map_err(Error::io("sync", &tail.path))?;
    check(tail, end)?;
    sync_dir(disk, dir)?;
    sync_dir(disk, parent_of(dir))
}

pub(crate) fn sync_dir(disk: &dyn Disk, dir: &Path) -> Result<(), Error> {
    disk.sync_dir(dir).map_err(Error::io("sync", dir))
}

pub(crate) fn parent_of(dir: &Path) -> &Path {
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn rewrite(segment: &Segment, end: u64) -> Result<(), Error> {
    let mut buf = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    while offset < end {
        let want = (end - offset).min(CHUNK_BYTES as u64) as usize;
        let read = segment.file.read_at(&mut buf[..want], offset).map_err(Error::io("read", &segment.path))?;
        if read == 0 {
            return Err(changed(segment));
        }
        segment.file.write_all_at(&buf[..read], offset).map_err(Error::io("write", &segment.path))?;
        offset += read as u64;
    }
    Ok(())
}

/// The system may have evicted a page that is not on disk between the first reading and the rewrite. Then the rewrite
/// has read something else.
fn check(segment: &Segment, end: &Tail) -> Result<(), Error> {
    let again = read::scan(slice::from_ref(segment), |_, _| Ok(()))?;
    if (again.offset, again.crc) == (end.offset, end.crc) { Ok(()) } else { Err(changed(segment)) }
}

fn changed(segment: &Segment) -> Error {
    Error::Changed { path: segment.path.clone() }
}
