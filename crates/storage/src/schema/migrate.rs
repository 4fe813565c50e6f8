//! Carries out a [`Plan`] in one batch: the file is at the one version or at the other.

use std::ops::ControlFlow;

use super::{
    DecodeError, RevisionKey,
    cut::{cut_json, cut_proto},
    gate, meta,
    plan::{Change, Plan},
    table::{Encoding, Key, Part, Row, row_of},
};
use crate::{Batch, Read};

/// Does what the plan says and returns how many keys that removed.
pub fn execute(batch: &mut Batch, plan: &Plan) -> Result<usize, DecodeError> {
    let mut removed = 0;
    for change in plan.changes() {
        match change {
            Change::Allowed(_) => {}
            Change::SetVersion(_, version) => meta::put_storage_version(batch, *version),
            Change::Removed(row) => removed += remove(batch, row),
            Change::PartRemoved(row, part) => remove_part(batch, row, part)?,
        }
    }
    Ok(removed)
}

/// How many keys of a row the file has.
pub fn count(read: &impl Read, row: &Row) -> usize {
    keys_of(read, row).len()
}

fn remove(batch: &mut Batch, row: &Row) -> usize {
    let keys = keys_of(batch, row);
    keys.iter().for_each(|key| batch.delete(row.bucket, key));
    keys.len()
}

fn remove_part(batch: &mut Batch, row: &Row, part: &Part) -> Result<(), DecodeError> {
    for key in keys_of(batch, row) {
        let Some(value) = batch.get(row.bucket, &key) else { continue };
        let cut = match (row.encoding, part.number) {
            (Encoding::Proto(_), Some(number)) => cut_proto(&value, number),
            _ => cut_json(&value, part.name),
        };
        let cut = cut.map_err(|e| DecodeError::new(row.bucket, &key, "a value with the parts of its row", e))?;
        match RevisionKey::decode(&key).filter(|_| row.bucket == super::Bucket::Key) {
            Some(revision) => batch.put_revision(revision, cut),
            None => batch.put(row.bucket, key, cut),
        }
    }
    Ok(())
}

/// The keys that a row stands for. Under a prefix all count, also those that are not of the form: nobody else's are there.
fn keys_of(read: &impl Read, row: &Row) -> Vec<Vec<u8>> {
    let (from, to) = match row.key {
        Key::Named(name) => (name.to_vec(), [name, b"\0"].concat()),
        Key::Under(prefix, _) => (prefix.to_vec(), gate::end_of(prefix)),
        Key::Form(_) => Default::default(),
    };
    let mut keys = Vec::new();
    read.scan(row.bucket, &from, &to, &mut |key, _| {
        let fits =
            !matches!(row.key, Key::Form(_)) || row_of(row.bucket, key).is_some_and(|found| found.key == row.key);
        if fits {
            keys.push(key.to_vec());
        }
        ControlFlow::Continue(())
    });
    keys
}
