//! A file opened by a tool that changes nothing.

use std::{path::Path, time::Duration};

use super::{
    Backend, OpenError, View,
    file::{File, FileView},
    hash,
    open::wait_for_lock,
};

/// A file opened for reading. Other readers may have it open too, writers not.
pub struct ReadOnly {
    view: FileView,
    size: u64,
    size_in_use: u64,
}

impl Backend {
    /// Opens an existing file for reading, under a shared lock. Nothing is created or changed.
    pub fn open_read_only(path: &Path, lock_timeout: Option<Duration>) -> Result<ReadOnly, OpenError> {
        let file = wait_for_lock(path, lock_timeout, |wait| File::open_read_only(path, wait))?;
        let sizes = file.sizes();
        Ok(ReadOnly { view: file.view(), size: sizes.total, size_in_use: sizes.in_use })
    }
}

impl ReadOnly {
    pub fn view(&self) -> View {
        View::of_file(self.view.clone())
    }

    /// See [`Backend::hash`].
    pub fn hash(&self) -> Result<u32, bolt::Error> {
        hash::hash(&self.view)
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn size_in_use(&self) -> u64 {
        self.size_in_use
    }

    /// Lets go of the memory that reading has mapped in, see [`bolt::Db::release_memory`].
    pub fn release_memory(&self) {
        self.view.release_memory();
    }

    /// Everything wrong with the pages of the file; empty if it is sound.
    pub fn check(&self) -> Vec<bolt::Problem> {
        self.view.check()
    }

    /// Names of all buckets, known or not, in order.
    pub fn bucket_names(&self) -> Result<Vec<Vec<u8>>, bolt::Error> {
        self.view.bucket_names()
    }

    /// Visits everything in a bucket, known or not, in order.
    pub fn each_of(&self, bucket: &[u8], f: impl FnMut(&[u8], &[u8])) -> Result<(), bolt::Error> {
        self.view.each_of(bucket, f)
    }

    /// Why a read came back empty that should not have, if a damaged page was met.
    pub fn failed(&self) -> Option<super::Failure> {
        self.view.failed()
    }
}
