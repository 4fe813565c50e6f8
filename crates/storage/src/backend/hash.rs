//! The hash over the whole file that etcd's maintenance API gives.

use super::{Backend, Failure, file::FileView};
use crate::schema::{Bucket, meta};

impl Backend {
    /// CRC-32C over the name of every bucket and its keys and values in order. Left out is what differs between
    /// members with equal data: how far they are, and the storage version, which changes at a moment of its own.
    pub fn hash(&self) -> Result<u32, Failure> {
        self.commit()?;
        let file = self.handle.shared.state().file.clone();
        hash(&file).map_err(|e| Failure::read(self.path(), e))
    }
}

pub(super) fn hash(file: &FileView) -> Result<u32, bolt::Error> {
    let mut crc = 0;
    for name in file.bucket_names()? {
        crc = crc32c::crc32c_append(crc, &name);
        let is_meta = name == Bucket::Meta.name().as_bytes();
        file.each_of(&name, |key, value| {
            if !(is_meta && [meta::CONSISTENT_INDEX, meta::TERM, meta::STORAGE_VERSION].contains(&key)) {
                crc = crc32c::crc32c_append(crc, key);
                crc = crc32c::crc32c_append(crc, value);
            }
        })?;
    }
    Ok(crc)
}
