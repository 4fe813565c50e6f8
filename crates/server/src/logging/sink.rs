//! Where lines go: standard streams, or a file that may be rotated by size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use super::LogError;
use super::time::Civil;
use crate::config::{LogFormat, LogOutput, Rotation};

pub(super) struct Sink {
    target: Target,
    console: bool,
    colours: bool,
}

enum Target {
    Stderr,
    Stdout,
    File(Mutex<LogFile>),
}

impl Sink {
    pub(super) fn open(output: &LogOutput, format: LogFormat, rotation: Option<Rotation>) -> Result<Sink, LogError> {
        let (target, terminal) = match output {
            LogOutput::Stderr => (Target::Stderr, io::stderr().is_terminal()),
            LogOutput::Stdout => (Target::Stdout, io::stdout().is_terminal()),
            LogOutput::File(path) => {
                let file = LogFile::open(path, rotation);
                let file = file.map_err(|source| LogError::Open { path: path.clone(), source })?;
                (Target::File(Mutex::new(file)), false)
            }
        };
        let console = match format {
            LogFormat::Auto => terminal,
            LogFormat::Json => false,
            LogFormat::Console => true,
        };
        let colours = terminal && std::env::var_os("NO_COLOR").is_none();
        Ok(Sink { target, console, colours })
    }

    pub(super) fn is_console(&self) -> bool {
        self.console
    }

    pub(super) fn has_colours(&self) -> bool {
        self.colours
    }

    /// A line that cannot be written is lost: there is no better place to complain.
    pub(super) fn write(&self, line: &[u8]) {
        let _ = match &self.target {
            Target::Stderr => io::stderr().lock().write_all(line),
            Target::Stdout => io::stdout().lock().write_all(line),
            Target::File(file) => file.lock().write(line),
        };
    }
}

pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    rotation: Option<Rotation>,
}

impl LogFile {
    pub(super) fn open(path: &Path, rotation: Option<Rotation>) -> io::Result<LogFile> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(LogFile { path: path.to_owned(), file, bytes, rotation })
    }

    pub(super) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let max = self.rotation.map(|rotation| rotation.bytes_max());
        if max.is_some_and(|max| self.bytes > 0 && self.bytes + line.len() as u64 > max) {
            // If the file cannot be moved the lines still go somewhere: into the old one.
            let _ = self.rotate();
        }
        self.bytes += line.len() as u64;
        self.file.write_all(line)
    }

    fn rotate(&mut self) -> io::Result<()> {
        fs::rename(&self.path, self.backup_path())?;
        let fresh = LogFile::open(&self.path, self.rotation)?;
        (self.file, self.bytes) = (fresh.file, fresh.bytes);
        self.prune()
    }

    /// `name-2006-01-02T15-04-05.000.ext` in UTC, as etcd's rotation names them; a number follows if that exists.
    fn backup_path(&self) -> PathBuf {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let t = Civil::of(since, 0);
        let stamp = format!(
            "{:04}-{:02}-{:02}T{:02}-{:02}-{:02}.{:03}",
            t.year,
            t.month,
            t.day,
            t.hour,
            t.minute,
            t.second,
            t.micros / 1000
        );
        let (stem, extension) = self.name_parts();
        let path = |suffix: String| self.path.with_file_name(format!("{stem}-{stamp}{suffix}{extension}"));
        let mut candidates = std::iter::once(String::new()).chain((1..).map(|n| format!("-{n}"))).map(path);
        candidates.find(|path| !path.exists()).unwrap_or_else(|| self.path.clone())
    }

    /// File name before and after its last dot.
    fn name_parts(&self) -> (String, String) {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let extension = self.path.extension().map(|ext| format!(".{}", ext.to_string_lossy())).unwrap_or_default();
        (stem, extension)
    }

    /// Removes rotated files beyond the number or age to keep.
    fn prune(&self) -> io::Result<()> {
        let Some(rotation) = self.rotation else { return Ok(()) };
        let mut backups = self.backups()?;
        // Without the extension names sort by time, newest last.
        let (_, extension) = self.name_parts();
        let stamp = |path: &PathBuf| path.to_string_lossy().trim_end_matches(extension.as_str()).to_owned();
        backups.sort_by_cached_key(stamp);
        let surplus = match rotation.maxbackups {
            0 => 0,
            keep => backups.len().saturating_sub(keep),
        };
        let oldest = rotation.age_max().and_then(|age| SystemTime::now().checked_sub(age));
        for (i, path) in backups.iter().enumerate() {
            let modified = fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
            if i < surplus || oldest.zip(modified).is_some_and(|(oldest, modified)| modified < oldest) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn backups(&self) -> io::Result<Vec<PathBuf>> {
        let (stem, extension) = self.name_parts();
        let dir = self.path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let is_backup = |name: &str| {
            let stamp = name.strip_prefix(&stem)?.strip_prefix('-')?.strip_suffix(&extension)?;
            let digits = stamp.bytes().filter(u8::is_ascii_digit).count();
            (stamp.contains('T') && digits >= 17).then_some(())
        };
        let paths = fs::read_dir(dir)?.filter_map(|entry| Some(entry.ok()?.path()));
        Ok(paths.filter(|path| path.file_name().and_then(|name| is_backup(name.to_str()?)).is_some()).collect())
    }
}

impl Rotation {
    fn bytes_max(&self) -> u64 {
        let megabytes = if self.maxsize == 0 { 100 } else { self.maxsize };
        megabytes.saturating_mul(1 << 20)
    }

    fn age_max(&self) -> Option<Duration> {
        (self.maxage > 0).then(|| Duration::from_secs(self.maxage.saturating_mul(86_400)))
    }
}
