//! The next segment, allocated ahead on a thread of its own so that a cut does not wait for it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, sync_channel},
    },
    thread::{self, JoinHandle},
};

use crate::{
    disk::{Disk, DiskFile, OpenMode},
    error::Error,
};

/// A preallocated, locked and empty file, still under its temporary name.
pub(crate) type Spare = (PathBuf, Box<dyn DiskFile>);

#[derive(Debug)]
pub(crate) struct Pipeline {
    /// `None` only while dropping: a closed channel tells the thread to end.
    spares: Option<Receiver<Result<Spare, Error>>>,
    thread: Option<JoinHandle<()>>,
}

impl Pipeline {
    pub(crate) fn start(disk: Arc<dyn Disk>, dir: &Path, size: u64) -> Result<Self, Error> {
        let failed = Error::io("start a thread for", dir);
        let dir = dir.to_path_buf();
        // No room in the channel: one spare is made, and the next only after it was taken and renamed away.
        let (sender, spares) = sync_channel(0);
        let work = move || {
            for count in 0u64.. {
                let spare = allocate(&*disk, &dir, count, size);
                let failed = spare.is_err();
                if let Err(unsent) = sender.send(spare) {
                    if let Ok((path, _lock)) = unsent.0 {
                        // Best effort: a spare file that stays is emptied and used by the next start.
                        let _ = disk.remove_file(&path);
                    }
                    return;
                }
                if failed {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("wal-spare".into()).spawn(work).map_err(failed)?;
        Ok(Self { spares: Some(spares), thread: Some(thread) })
    }

    /// `None` once the thread has ended after an error.
    pub(crate) fn take(&self) -> Option<Result<Spare, Error>> {
        self.spares.as_ref()?.recv().ok()
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.spares = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was printed already, and there is nothing left to undo here.
            let _ = thread.join();
        }
    }
}

/// Two names in turn, so that the file being made is never the one taken last.
fn allocate(disk: &dyn Disk, dir: &Path, count: u64, size: u64) -> Result<Spare, Error> {
    let path = dir.join(format!("{}.tmp", count % 2));
    let file = disk.open(&path, OpenMode::Create).map_err(Error::io("create", &path))?;
    file.allocate(size).map_err(Error::io("preallocate", &path))?;
    Ok((path, file))
}
