//! The last row on disk, for starts while the API is away.
//!
//! A file is used only for the version that wrote it, and only if it is whole: its digest is that of its row.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use featureset::Row;
use serde_json::{Value, json};

use crate::snapshot::{Snapshot, Source};

const SCHEMA: u64 = 1;

/// Why the file of [`crate::Builder::cache`] could not be used. It is only logged: the program
/// continues without a cache.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CacheError {
    #[error("failed to read the cache of gates {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("failed to write the cache of gates {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The file was written by another version or schema, or is damaged.
    #[error("the cache of gates {} cannot be used: {why}", path.display())]
    Unusable { path: PathBuf, why: String },
}

#[derive(Clone, Debug)]
pub(crate) struct Cache {
    path: PathBuf,
    /// The version of the program, as it was given: that of a development build is no version of a row.
    version: String,
    written: Option<Arc<Snapshot>>,
}

impl Cache {
    pub(crate) fn new(path: &Path, version: &str) -> Cache {
        Cache { path: path.to_owned(), version: version.to_owned(), written: None }
    }

    /// `None` if there is no file yet.
    pub(crate) fn read(&self) -> Result<Option<Snapshot>, CacheError> {
        let path = || self.path.clone();
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(CacheError::Read { path: path(), source }),
        };
        parse(&text, &self.version).map(Some).map_err(|why| CacheError::Unusable { path: path(), why })
    }

    /// Beside the file first, then in its place; what is there already is not written again.
    pub(crate) fn keep(&mut self, snapshot: &Arc<Snapshot>) -> Result<(), CacheError> {
        if snapshot.source != Source::Cluster || self.written.as_ref() == Some(snapshot) {
            return Ok(());
        }
        let failed = |source| CacheError::Write { path: self.path.clone(), source };
        write(&self.path, &text(snapshot, &self.version)).map_err(failed)?;
        self.written = Some(snapshot.clone());
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.to_owned().into_os_string();
    beside.push(".new");
    let mut file = File::create(&beside)?;
    file.write_all(text.as_bytes())?;
    // After a power cut it is the old file or the new one.
    file.sync_all()?;
    fs::rename(&beside, path)
}

fn text(snapshot: &Snapshot, version: &str) -> String {
    let Row { version: of_row, enabled, disabled } = &snapshot.row;
    let row = json!({"version": of_row, "enabled": enabled, "disabled": disabled});
    let all = json!({
        "schema": SCHEMA,
        "version": version,
        "featureSet": snapshot.feature_set,
        "digest": snapshot.digest(),
        "row": row,
    });
    format!("{all:#}\n")
}

fn parse(text: &str, version: &str) -> Result<Snapshot, String> {
    let all: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    if all["schema"] != SCHEMA {
        return Err(format!("its schema is {}, and {SCHEMA} is what is read here", all["schema"]));
    }
    if all["version"] != version {
        return Err(format!("it is of version {}, and this is {version:?}", all["version"]));
    }
    let names = |key: &str| -> Result<_, String> {
        let list = all["row"][key].as_array().ok_or_else(|| format!("its row has no list {key}"))?;
        let name = |name: &Value| name.as_str().map(str::to_owned).ok_or_else(|| format!("a gate in {key} is {name}"));
        list.iter().map(name).collect()
    };
    let of_row = all["row"]["version"].as_str().ok_or("its row has no version")?.to_owned();
    let row = Row { version: of_row, enabled: names("enabled")?, disabled: names("disabled")? };
    if all["digest"] != row.digest() {
        return Err("its digest is not that of its row; it was changed, or not written whole".to_owned());
    }
    let feature_set = all["featureSet"].as_str().unwrap_or_default().to_owned();
    Ok(Snapshot::new(row, feature_set, Source::Cache))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(on: &[&str]) -> Arc<Snapshot> {
        let fixed = Snapshot::fixed(on.iter().copied(), ["Z"]);
        Arc::new(Snapshot { source: Source::Cluster, feature_set: "OKD".to_owned(), ..fixed })
    }

    #[test]
    fn the_cache_is_read_back() {
        let dir = harness::tempdir();
        let path = dir.path().join("gates");
        let mut cache = Cache::new(&path, "1.4.0");
        assert!(cache.read().unwrap().is_none());
        cache.keep(&snapshot(&["A"])).unwrap();
        let read = Cache::new(&path, "1.4.0").read().unwrap().unwrap();
        assert_eq!((read.source, &read.row, read.feature_set.as_str()), (Source::Cache, &snapshot(&["A"]).row, "OKD"));
        // An equal snapshot is not written again, and one that is not from the cluster is never written.
        fs::remove_file(&path).unwrap();
        cache.keep(&snapshot(&["A"])).unwrap();
        cache.keep(&Arc::new(Snapshot::fixed(["B"], []))).unwrap();
        assert!(cache.read().unwrap().is_none());
        cache.keep(&snapshot(&["B"])).unwrap();
        assert!(cache.read().unwrap().unwrap().is_enabled("B"));
    }

    #[test]
    fn an_invalid_cache_or_one_of_another_version_is_not_used() {
        let good = text(&snapshot(&["A"]), "1.4.0");
        assert!(parse(&good, "1.4.0").is_ok());
        for (from, to, part) in [
            ("", "", "it is of version \"1.4.0\", and this is \"1.5.0\""),
            ("\"schema\": 1", "\"schema\": 2", "its schema is 2"),
            ("\"A\"", "\"B\"", "its digest is not that of its row"),
            ("\"A\"", "3", "a gate in enabled is 3"),
            ("\"enabled\"", "\"enable\"", "its row has no list enabled"),
            ("{", "", "it is not JSON"),
        ] {
            let version = if from.is_empty() { "1.5.0" } else { "1.4.0" };
            let why = parse(&good.replacen(from, to, 1), version).unwrap_err();
            assert!(why.contains(part), "{part}: {why}");
        }
    }

    #[test]
    fn a_path_that_cannot_be_written_is_named() {
        let dir = harness::tempdir();
        let path = dir.path().join("no/such/dir");
        let error = Cache::new(&path, "1.4.0").keep(&snapshot(&["A"])).unwrap_err();
        assert_eq!(error.to_string(), format!("failed to write the cache of gates {}", path.display()));
    }
}
