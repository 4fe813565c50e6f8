//! The file that tells programs where a process listens, so that they can start it with port 0.
//!
//! It holds one line of JSON: the process id, and for each kind of listener a list of URLs, such as
//! `{"pid":123,"client":["http://127.0.0.1:41234"],"peer":["http://127.0.0.1:41235"]}`.
//!
//! Invariants: the file appears as a whole, after the last listener is bound, so its ports are final and connections to
//! them queue; it is removed before an orderly stop closes the first listener, and also when the start fails.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
};

use serde::ser::{Serialize, SerializeMap, Serializer};

/// The first bytes of every ports file. A file that begins otherwise belongs to somebody else and is not removed.
const BEGINNING: &[u8] = b"{\"pid\":";

#[derive(Debug, thiserror::Error)]
pub enum PortsFileError {
    #[error("--ports-file: {} exists and is not a ports file; give another path", path.display())]
    Foreign { path: PathBuf },
    #[error("--ports-file: failed to remove {}, which an earlier run left", path.display())]
    Remove { path: PathBuf, source: io::Error },
    #[error("--ports-file: failed to write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// The URLs of a process by kind of listener, in the order in which they are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ports(Vec<(&'static str, Vec<String>)>);

impl Ports {
    /// Adds the URLs of one kind of listener; an empty list says that there is none of that kind.
    #[must_use]
    pub fn with(mut self, kind: &'static str, urls: Vec<String>) -> Ports {
        self.0.push((kind, urls));
        self
    }

    fn line(&self) -> String {
        // Numbers and texts always have a form in JSON.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

impl Serialize for Ports {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("pid", &std::process::id())?;
        for (kind, urls) in &self.0 {
            map.serialize_entry(kind, urls)?;
        }
        // Builds with failpoints listen for fault tools too.
        if let Some(address) = failpoint::http_address() {
            map.serialize_entry("failpoint", &[reachable_url("http", address)])?;
        }
        map.end()
    }
}

/// The URL at which programs on this machine reach a listener.
pub fn reachable_url(scheme: &str, address: SocketAddr) -> String {
    format!("{scheme}://{}", reachable(address))
}

/// An unspecified address (0.0.0.0) cannot be dialled everywhere; loopback reaches the same listener.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        _ => return address,
    };
    SocketAddr::new(ip, address.port())
}

/// The ports file of this process. Dropping it removes the file.
#[derive(Debug, Default)]
pub struct PortsFile {
    /// `None`: no file is asked for, and nothing below does anything.
    path: Option<PathBuf>,
    written: Option<String>,
}

impl PortsFile {
    /// Removes the file of an earlier run and checks that a new one can be written. Call it before binding.
    pub fn prepare(path: Option<&Path>) -> Result<PortsFile, PortsFileError> {
        let Some(path) = path else { return Ok(PortsFile::default()) };
        remove_stale(path)?;
        let probe = || {
            let temporary = temporary(path)?;
            File::create(&temporary)?;
            fs::remove_file(&temporary)
        };
        probe().map_err(|source| PortsFileError::Write { path: path.to_owned(), source })?;
        Ok(PortsFile { path: Some(path.to_owned()), written: None })
    }

    /// Writes the file as a whole. Call it when all listeners are bound.
    pub fn publish(&mut self, ports: &Ports) -> Result<(), PortsFileError> {
        let Some(path) = &self.path else { return Ok(()) };
        let line = ports.line();
        replace(path, &line).map_err(|source| PortsFileError::Write { path: path.clone(), source })?;
        self.written = Some(line);
        Ok(())
    }

    /// Removes the file, unless another process has replaced it. Call it before the first listener closes.
    pub fn withdraw(&mut self) {
        let (Some(path), Some(written)) = (&self.path, self.written.take()) else { return };
        if fs::read(path).is_ok_and(|content| content == written.as_bytes())
            && let Err(error) = fs::remove_file(path)
        {
            tracing::warn!(path = %path.display(), %error, "failed to remove the ports file");
        }
    }
}

impl Drop for PortsFile {
    fn drop(&mut self) {
        self.withdraw();
    }
}

fn remove_stale(path: &Path) -> Result<(), PortsFileError> {
    let failed = |source| PortsFileError::Remove { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
        // Reading a pipe or a device could wait forever.
        Ok(metadata) if metadata.is_file() && is_ports_file(path).map_err(failed)? => {
            fs::remove_file(path).map_err(failed)
        }
        Ok(_) => Err(PortsFileError::Foreign { path: path.to_owned() }),
    }
}

/// An empty file counts as a ports file, so that the path can come from `mktemp`.
fn is_ports_file(path: &Path) -> io::Result<bool> {
    let mut beginning = Vec::new();
    File::open(path)?.take(BEGINNING.len() as u64).read_to_end(&mut beginning)?;
    Ok(beginning.is_empty() || beginning == BEGINNING)
}

fn replace(path: &Path, content: &str) -> io::Result<()> {
    let temporary = temporary(path)?;
    let written = File::create(&temporary).and_then(|mut file| file.write_all(content.as_bytes()));
    written.and_then(|()| fs::rename(&temporary, path)).inspect_err(|_| {
        // The error that is returned says more than a failure to clean up.
        let _ = fs::remove_file(&temporary);
    })
}

/// A file next to `path`, so that a rename is atomic. The process id keeps two processes apart.
fn temporary(path: &Path) -> io::Result<PathBuf> {
    let none = || io::Error::new(io::ErrorKind::InvalidInput, "the path does not end in the name of a file");
    let name = path.file_name().ok_or_else(none)?.to_string_lossy();
    Ok(path.with_file_name(format!(".{name}.{}.tmp", std::process::id())))
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn ports() -> Ports {
        Ports::default().with("client", vec!["http://127.0.0.1:1".into()]).with("metrics", Vec::new())
    }

    fn line() -> String {
        format!(r#"{{"pid":{},"client":["http://127.0.0.1:1"],"metrics":[]}}"#, std::process::id()) + "\n"
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).expect("a directory");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn it_is_there_from_publish_to_drop_and_nothing_else_is() {
        let dir = harness::tempdir();
        let path = dir.path().join("ports.json");
        let mut file = PortsFile::prepare(Some(&path)).expect("prepare");
        assert!(names(dir.path()).is_empty());
        file.publish(&ports()).expect("publish");
        assert_eq!(fs::read_to_string(&path).expect("the file"), line());
        assert_eq!(names(dir.path()), ["ports.json"]);
        drop(file);
        assert!(names(dir.path()).is_empty());
    }

    #[test_case("" ; "of mktemp")]
    #[test_case("{\"pid\":1,\"client\":[\"http://127.0.0.1:2379\"]}\n" ; "of an earlier run")]
    fn a_stale_file_is_removed_before_anything_is_bound(stale: &str) {
        let dir = harness::tempdir();
        let path = dir.path().join("ports.json");
        fs::write(&path, stale).expect("write");
        let file = PortsFile::prepare(Some(&path)).expect("prepare");
        assert!(!path.exists());
        drop(file);
    }

    #[test]
    fn a_file_of_another_kind_is_kept() {
        let dir = harness::tempdir();
        let path = dir.path().join("notes");
        fs::write(&path, "important").expect("write");
        let error = PortsFile::prepare(Some(&path)).expect_err("not a ports file");
        assert!(matches!(error, PortsFileError::Foreign { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("the file"), "important");
        let error = PortsFile::prepare(Some(dir.path())).expect_err("a directory");
        assert!(matches!(error, PortsFileError::Foreign { .. }), "{error}");
    }

    #[test]
    fn a_missing_directory_is_an_error_before_anything_is_bound() {
        let dir = harness::tempdir();
        let path = dir.path().join("missing/ports.json");
        let error = PortsFile::prepare(Some(&path)).expect_err("no directory");
        assert_eq!(error.to_string(), format!("--ports-file: failed to write {}", path.display()));
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn a_failed_publish_leaves_nothing_behind() {
        let dir = harness::tempdir();
        let path = dir.path().join("ports.json");
        let mut file = PortsFile::prepare(Some(&path)).expect("prepare");
        fs::create_dir(&path).expect("something in the way");
        file.publish(&ports()).expect_err("a directory cannot be replaced");
        assert_eq!(names(dir.path()), ["ports.json"]);
    }

    #[test]
    fn the_file_of_another_process_stays() {
        let dir = harness::tempdir();
        let path = dir.path().join("ports.json");
        let mut file = PortsFile::prepare(Some(&path)).expect("prepare");
        file.publish(&ports()).expect("publish");
        fs::write(&path, "{\"pid\":1}\n").expect("write");
        drop(file);
        assert_eq!(fs::read_to_string(&path).expect("the file"), "{\"pid\":1}\n");
    }

    #[test]
    fn without_a_path_nothing_is_done() {
        let mut file = PortsFile::prepare(None).expect("prepare");
        file.publish(&ports()).expect("publish");
    }

    #[test_case("0.0.0.0:7" => "http://127.0.0.1:7")]
    #[test_case("[::]:7" => "http://[::1]:7")]
    #[test_case("10.0.0.1:7" => "http://10.0.0.1:7")]
    fn unspecified_addresses_become_loopback(address: &str) -> String {
        reachable_url("http", address.parse().expect("an address"))
    }
}
