//! `snapshot status`: what a snapshot file holds.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    path::Path,
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use mvcc::KvFields;
use serde::Serialize;
use storage::{Backend, Bucket, ReadOnly, RevisionKey, schema::meta};

use crate::{
    failure::{open_error, path_error},
    print::Shown,
    progress::Progress,
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    hash: u32,
    revision: i64,
    total_key: usize,
    total_size: u64,
    /// Empty before 3.6, which writes none.
    version: String,
}

pub(crate) fn status(path: &Path, lock_timeout: Option<Duration>) -> anyhow::Result<Status> {
    let file = Backend::open_read_only(path, lock_timeout).map_err(open_error)?;
    check_pages(&file)?;
    let version = meta::storage_version(&file.view())?.map(|v| v.stored()).unwrap_or_default();
    let mut progress = Progress::bytes("reading", file.size());
    let (mut hash, mut done) = (0, 0);
    let mut keys = Keys::default();
    for name in file.bucket_names()? {
        hash = crc32c::crc32c_append(hash, &name);
        let mut result = Ok(());
        file.each_of(&name, |key, value| {
            hash = crc32c::crc32c_append(hash, key);
            hash = crc32c::crc32c_append(hash, value);
            if name == Bucket::Key.name().as_bytes() && result.is_ok() {
                result = keys.take(key, value);
            }
            done += (key.len() + value.len()) as u64;
            if progress.set(done) {
                file.release_memory();
            }
        })?;
        let shown = String::from_utf8_lossy(&name).into_owned();
        result.with_context(|| format!("error during bucket key iteration, name: {shown:?} err"))?;
    }
    if let Some(failure) = file.failed() {
        bail!(failure);
    }
    let total_key = keys.live.len();
    Ok(Status { hash, revision: keys.revision, total_key, total_size: file.size(), version })
}

/// Refuses a file with damaged pages.
pub(crate) fn check_pages(file: &ReadOnly) -> anyhow::Result<()> {
    let problems = file.check();
    file.release_memory();
    if problems.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Err(anyhow!("snapshot file integrity check failed. {} errors found.\n{}", lines.len(), lines.join("\n")))
}

/// The existence of a file is checked before anything else, in Go's words.
pub(crate) fn check_exists(path: &Path) -> anyhow::Result<()> {
    std::fs::metadata(path).map(drop).map_err(|error| path_error("stat", path, &error))
}

/// Keys that exist, each as 128 random bits of its hash: 16 bytes, however long it is.
#[derive(Default)]
struct Keys {
    live: HashSet<u128>,
    hashers: [RandomState; 2],
    revision: i64,
}

impl Keys {
    fn take(&mut self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        let shown = key.escape_ascii();
        let at = RevisionKey::decode(key).with_context(|| format!("cannot parse revision key: \"{shown}\""))?;
        let kv = KvFields::parse(value)
            .with_context(|| format!("cannot unmarshal value, key: \"{}\"", key.escape_ascii()))?;
        let [high, low] = [&self.hashers[0], &self.hashers[1]].map(|h| u128::from(h.hash_one(kv.key)));
        let id = high << 64 | low;
        if at.tombstone {
            self.live.remove(&id)
        } else {
            self.live.insert(id)
        };
        self.revision = at.main;
        Ok(())
    }
}

impl Shown for Status {
    fn row(&self) -> Vec<(&'static str, String)> {
        vec![
            ("hash", format!("{:x}", self.hash)),
            ("revision", self.revision.to_string()),
            ("total keys", self.total_key.to_string()),
            ("total size", cli::size(self.total_size)),
            ("version", self.version.clone()),
        ]
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("Hash", self.hash.to_string()),
            ("Revision", self.revision.to_string()),
            ("Keys", self.total_key.to_string()),
            ("Size", self.total_size.to_string()),
            ("Version", self.version.clone()),
        ]
    }
}
