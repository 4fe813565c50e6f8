//! `hashkv`: the hash over the history of keys in a file. The file is only read.

use std::{path::Path, time::Duration};

use anyhow::{anyhow, bail};
use mvcc::{FileHashError, HashKv};
use serde::Serialize;
use storage::Backend;

use crate::{failure::open_error, print::Shown, progress::Progress};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Found {
    hash: u32,
    hash_revision: i64,
    compact_revision: i64,
}

pub(crate) fn hashkv(path: &Path, rev: i64, lock_timeout: Option<Duration>) -> anyhow::Result<Found> {
    let file = Backend::open_read_only(path, lock_timeout).map_err(open_error)?;
    let mut progress = Progress::bytes("hashing", 2 * file.size());
    let hashed = mvcc::hash_file(&file.view(), rev, &mut |done| {
        if progress.set(done) {
            file.release_memory();
        }
    });
    // A damaged page reads as if nothing were there.
    if let Some(failure) = file.failed() {
        bail!(failure);
    }
    let HashKv { hash, hash_revision, compact_revision, .. } = hashed.map_err(in_etcds_words)?;
    Ok(Found { hash, hash_revision, compact_revision })
}

fn in_etcds_words(error: FileHashError) -> anyhow::Error {
    match error {
        FileHashError::Revision(mvcc::Error::Compacted { .. }) => anyhow!("mvcc: required revision has been compacted"),
        FileHashError::Revision(mvcc::Error::FutureRevision { .. }) => {
            anyhow!("mvcc: required revision is a future revision")
        }
        error => error.into(),
    }
}

impl Shown for Found {
    fn row(&self) -> Vec<(&'static str, String)> {
        vec![
            ("hash", self.hash.to_string()),
            ("hash revision", self.hash_revision.to_string()),
            ("compact revision", self.compact_revision.to_string()),
        ]
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("Hash", self.hash.to_string()),
            ("Hash revision", self.hash_revision.to_string()),
            ("Compact revision", self.compact_revision.to_string()),
        ]
    }
}
