//! The file goes down after the cluster version: first the log is cut, so that nothing newer is left to be read or sent,
//! then the storage version is lowered. Going up is part of applying the version (`apply::cluster`).
//!
//! Every step may be cut off by a crash and is taken again by the next start: until the storage version is lowered the
//! dir is one of the higher version, and afterwards one of the lower.

use failpoint::failpoint;
use proto::{Version, walpb};
use storage::schema;

use crate::{apply::cluster::conf_state, apply_loop::ApplyLoop, error::FatalError};

impl ApplyLoop {
    /// Lowers the file to the cluster version, if it is above it and the log allows it. What is not possible yet is
    /// tried again after the next entries.
    pub(crate) fn lower_storage(&mut self) -> Result<(), FatalError> {
        let Some((version, storage)) = self.storage_above()? else {
            self.lower_due = false;
            return Ok(());
        };
        self.lower_due = true;
        if let Some(index) = self.cut_log(version)? {
            tracing::info!(index, %version, "the log still holds an entry that is newer than the cluster version");
            return Ok(());
        }
        failpoint!("lowerBeforeStorageVersion");
        let mut batch = self.state.backend.write();
        schema::gate::clear(&mut batch);
        schema::meta::put_storage_version(&mut batch, version);
        batch.commit().map_err(FatalError::Backend)?;
        failpoint!("lowerAfterStorageVersion");
        self.lower_due = false;
        tracing::info!(from = %storage, to = %version, "updated storage version");
        if self.state.cluster.read().downgrade().enabled {
            tracing::info!(cluster_version = %version, "The server is ready to downgrade");
        }
        Ok(())
    }

    /// Cluster version and storage version, where the second is higher.
    fn storage_above(&self) -> Result<Option<(Version, Version)>, FatalError> {
        let version = self.state.cluster.read().version().filter(|version| *version >= schema::version::V3_6);
        let storage = schema::meta::storage_version(&self.state.backend.view());
        let storage = storage.map_err(|e| FatalError::Damaged { index: self.snapshot_index, what: e.to_string() })?;
        Ok(version.zip(storage).filter(|(version, storage)| storage > version))
    }

    /// Records a snapshot as of the last applied entry and forgets the log before it, in memory too: another member that
    /// needs entries from there gets a database instead. Returns the last entry behind it that is newer than `version`.
    fn cut_log(&mut self, version: Version) -> Result<Option<u64>, FatalError> {
        failpoint!("lowerBeforeSnapshot");
        self.state.backend.commit().map_err(FatalError::Backend)?;
        let read = |e: schema::DecodeError| FatalError::Damaged { index: self.snapshot_index, what: e.to_string() };
        let (index, term) = schema::meta::consistent(&self.state.backend.view()).map_err(read)?;
        let members = conf_state(&self.state.cluster.read());
        let record = walpb::Snapshot { index: Some(index), term: Some(term), conf_state: Some(members) };
        let newer = self.core.cut_log(record, version).ok_or_else(|| FatalError::Core("it has ended".into()))?;
        self.snapshot_index = self.snapshot_index.max(index);
        failpoint!("lowerAfterSnapshot");
        tracing::info!(snapshot_index = index, "Cluster version downgrade detected, forcing snapshot");
        Ok(newer)
    }

    /// Whether the database may be sent: its version must be that of the cluster at its index.
    pub(crate) fn is_storage_settled(&self) -> bool {
        self.storage_above().is_ok_and(|above| above.is_none())
    }
}
