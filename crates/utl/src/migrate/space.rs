//! Whether the copy fits, before its first byte is written.

use std::path::Path;

use anyhow::{Context, bail};
use node::DataDir;

use crate::survey::Survey;

/// A log segment and the spare one beside it, both reserved in full.
const LOG_BYTES: u64 = 2 * 64 * 1000 * 1000;
/// Small files, directories, and what file systems keep for themselves.
const ROOM_BYTES: u64 = 16 << 20;

pub(super) fn check(survey: &Survey) -> anyhow::Result<()> {
    let database = std::fs::metadata(&survey.database).map_or(0, |meta| meta.len());
    // Entries that are applied become keys; entries that are kept go into the new log.
    let grows = 2 * survey.log.bytes;
    let (data, log) = (database + grows + ROOM_BYTES, LOG_BYTES + survey.log.bytes);
    let dir = &survey.dir;
    let apart = DataDir::new(dir.root(), None).wal() != dir.wal();
    if apart {
        fits(&dir.wal(), log)?;
    }
    fits(dir.root(), if apart { data } else { data + log })
}

fn fits(dir: &Path, needed: u64) -> anyhow::Result<()> {
    let found =
        rustix::fs::statvfs(dir).with_context(|| format!("failed to ask for the free space of {}", dir.display()))?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if free < needed {
        bail!(
            "the copy needs {} on the disk of {}, which has {} left: free some, and try again",
            cli::size(needed),
            dir.display(),
            cli::size(free)
        );
    }
    Ok(())
}
