//! A copy without free pages: every pair is put again, in order, into a new file.

use std::path::Path;

use crate::{
    cursor::Bucket,
    db::{Db, Options},
    error::Error,
    open,
    tx_read::ReadTx,
};

/// How full the pages of a compacted file are.
const FILL: f32 = 0.9;

/// Copies all buckets of `from` into the new file `to`, committing about every `tx_bytes_max` bytes of keys and
/// values, and makes it durable. `progress` is told the bytes copied so far. Nested buckets are refused. After an
/// error a part of the copy may be left behind.
pub fn compact(
    from: &ReadTx,
    to: &Path,
    options: Options,
    tx_bytes_max: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    if to.metadata().is_ok_and(|file| file.len() > 0) {
        return Err(Error::DestinationExists { path: to.into() });
    }
    // Nobody reads the copy before it is whole, so one sync at its end is enough.
    let page_size = options.page_size.or(Some(from.pages().page_size));
    let options = Options { no_sync: true, page_size, create: true, ..options };
    let db = Db::open(to, options).map_err(|e| Error::Destination(Box::new(e)))?;
    let mut run = Run { db: &db, tx_bytes_max, done: 0, progress };
    for name in from.buckets()? {
        let Some(bucket) = from.bucket(&name)? else { continue };
        run.bucket(&name, bucket)?;
    }
    db.sync()?;
    open::sync_dir_of(to).map_err(|source| Error::Io { op: "sync the directory of the copy", source })
}

struct Run<'a> {
    db: &'a Db,
    tx_bytes_max: u64,
    done: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl Run<'_> {
    fn bucket(&mut self, name: &[u8], from: Bucket<'_>) -> Result<(), Error> {
        let mut cursor = from.cursor();
        let mut pair = cursor.first()?;
        loop {
            let mut tx = self.db.begin_write()?;
            let mut bucket = tx.create_bucket_if_missing(name)?;
            bucket.set_fill(FILL);
            bucket.set_sequence(from.sequence());
            let mut bytes = 0;
            while let Some((key, value)) = pair.filter(|_| bytes < self.tx_bytes_max) {
                if cursor.is_bucket() {
                    return Err(Error::IsBucket { key: key.into() });
                }
                bucket.put(key, value)?;
                bytes += (key.len() + value.len()) as u64;
                pair = cursor.next()?;
            }
            tx.commit()?;
            self.done += bytes;
            (self.progress)(self.done);
            if pair.is_none() {
                return Ok(());
            }
        }
    }
}
