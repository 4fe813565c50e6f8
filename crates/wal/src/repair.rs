//! Cutting a torn tail off, with a copy kept, and clearing what lies behind the last record.

use std::path::{Path, PathBuf};

use crate::{
    disk::{Disk, OpenMode},
    error::Error,
    segment::Segment,
};

const COPY_BYTES: usize = 1 << 20;

/// Copies the segment to `<name>.broken` and cuts it at `offset`, the end of its last good record.
pub(crate) fn cut_torn_tail(disk: &dyn Disk, segment: &Segment, offset: u64, why: &str) -> Result<(), Error> {
    let broken = PathBuf::from(format!("{}.broken", segment.path.display()));
    copy(disk, segment, &broken)?;
    segment.file.set_size(offset).map_err(Error::io("truncate", &segment.path))?;
    segment.file.sync_data().map_err(Error::io("sync", &segment.path))?;
    let (path, copy) = (segment.path.display(), broken.display());
    tracing::warn!(%path, %copy, offset, why, "repaired the torn end of the WAL");
    Ok(())
}

/// Leaves zeros after `offset`, up to `size` bytes. Records of a torn write may lie there; a new record that overwrote
/// only some of them would make the rest look like damage.
pub(crate) fn zero_from(segment: &Segment, offset: u64, size: u64) -> Result<(), Error> {
    segment.file.set_size(offset).map_err(Error::io("truncate", &segment.path))?;
    segment.file.allocate(size.max(offset)).map_err(Error::io("preallocate", &segment.path))
}

fn copy(disk: &dyn Disk, from: &Segment, to: &Path) -> Result<(), Error> {
    let file = disk.open(to, OpenMode::Create).map_err(Error::io("create", to))?;
    let mut buf = vec![0; COPY_BYTES];
    let mut offset = 0;
    loop {
        let read = from.file.read_at(&mut buf, offset).map_err(Error::io("read", &from.path))?;
        if read == 0 {
            return file.sync_data().map_err(Error::io("sync", to));
        }
        file.write_all_at(&buf[..read], offset).map_err(Error::io("write", to))?;
        offset += read as u64;
    }
}
