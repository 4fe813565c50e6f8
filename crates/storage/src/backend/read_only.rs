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

    /// Why a read came back empty that should not have, if a damaged page was met.
    pub fn failed(&self) -> Option<super::Failure> {
        self.view.failed()
    }
}
