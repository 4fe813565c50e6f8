//! The state of a night: which steps are done for one commit, in a file that each finished step is appended to.
//!
//! The first line is the header; every other line is `ok SECONDS NAME` or `FAILED SECONDS NAME`, and the last line of a
//! step counts. A line that cannot be read is ignored, so its step runs again. A file without the header is moved aside.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

const HEADER: &str = "lockgate night 1";

#[derive(Debug, Default, PartialEq)]
pub(super) struct Done {
    /// Steps that succeeded, with their seconds.
    ok: BTreeMap<String, f64>,
}

impl Done {
    pub(super) fn seconds(&self, step: &str) -> Option<f64> {
        self.ok.get(step).copied()
    }

    /// Returns what can be read, and each damaged line.
    fn parse(text: &str) -> Option<(Done, Vec<&str>)> {
        let mut lines = text.split_inclusive('\n');
        if lines.next()?.trim_end() != HEADER {
            return None;
        }
        let (mut done, mut damaged) = (Done::default(), Vec::new());
        for line in lines {
            match parse_line(line) {
                Some((true, seconds, name)) => {
                    done.ok.insert(name.to_owned(), seconds);
                }
                Some((false, _, name)) => {
                    done.ok.remove(name);
                }
                None => damaged.push(line.trim_end()),
            }
        }
        Some((done, damaged))
    }
}

/// A line without its newline was cut off by a crash: its name may be incomplete.
fn parse_line(line: &str) -> Option<(bool, f64, &str)> {
    let (word, rest) = line.strip_suffix('\n')?.split_once(' ')?;
    let (seconds, name) = rest.split_once(' ')?;
    let seconds: f64 = seconds.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)?;
    let ok = match word {
        "ok" => true,
        "FAILED" => false,
        _ => return None,
    };
    (!name.is_empty()).then_some((ok, seconds, name))
}

/// The open state file. Its lock keeps a second night off this commit.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

impl Drop for Journal {
    /// Releases the lock. Closing the file would not be enough: a child process that another thread is just starting holds
    /// a copy of every descriptor until it executes its program, and with it the lock.
    fn drop(&mut self) {
        // If this fails, closing the file releases the lock.
        let _ = self.file.unlock();
    }
}

impl Journal {
    /// Opens the file in this directory, or begins it.
    pub(super) fn open(dir: &Path) -> Result<(Journal, Done)> {
        fs::create_dir_all(dir).with_context(|| format!("failed to make {}", dir.display()))?;
        let path = dir.join("done.txt");
        let open = || OpenOptions::new().create(true).append(true).read(true).open(&path);
        let mut file = open().with_context(|| format!("failed to open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("another night is running with {}", path.display()),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("failed to lock {}", path.display()));
            }
        }
        let bytes = fs::read(&path).with_context(|| format!("failed to read {}", path.display()))?;
        // A damaged file may hold any bytes.
        let text = String::from_utf8_lossy(&bytes);
        let mut done = Done::default();
        match Done::parse(&text) {
            Some((found, damaged)) => {
                for line in damaged {
                    println!("{}: ignoring a damaged line: {line:?}", path.display());
                }
                done = found;
                // A newline after a line that was cut off would make it whole, so the line is taken out.
                if !text.ends_with('\n') {
                    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                    file.set_len(whole as u64)?;
                }
            }
            None if text.is_empty() => writeln!(file, "{HEADER}")?,
            None => {
                let aside = path.with_extension("damaged");
                println!("{} is no state of a night: it is kept as {}", path.display(), aside.display());
                fs::copy(&path, &aside).with_context(|| format!("failed to write {}", aside.display()))?;
                file.set_len(0)?;
                writeln!(file, "{HEADER}")?;
            }
        }
        Ok((Journal { file, path }, done))
    }

    pub(super) fn record(&mut self, step: &str, seconds: f64, ok: bool) -> Result<()> {
        let word = if ok { "ok" } else { "FAILED" };
        let line = format!("{word} {seconds:.1} {step}\n");
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.with_context(|| format!("failed to write {}", self.path.display()))
    }
}

/// Returns the recorded steps without opening a journal; none if there is no readable file.
pub(super) fn peek(dir: &Path) -> Done {
    let bytes = fs::read(dir.join("done.txt")).unwrap_or_default();
    Done::parse(&String::from_utf8_lossy(&bytes)).map(|(done, _)| done).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Done, Vec<&str>) {
        Done::parse(text).expect("the header is right")
    }

    #[test]
    fn the_last_line_of_a_step_counts() {
        let text = format!("{HEADER}\nFAILED 2.0 sim 1\nok 3.5 sim 1\nok 1.0 sim 2\nFAILED 1.0 sim 2\n");
        let (done, damaged) = parse(&text);
        assert_eq!(done.seconds("sim 1"), Some(3.5));
        assert_eq!(done.seconds("sim 2"), None);
        assert_eq!(damaged, [""; 0]);
    }

    /// A damaged line costs one more run of its step and nothing else.
    #[test]
    fn damaged_lines_are_ignored() {
        for line in
            ["ok", "ok 1.0", "ok x sim 1", "ok NaN sim 1", "ok -1 sim 1", "maybe 1.0 sim 1", "ok 1.0 ", "\0\0\0"]
        {
            let text = format!("{HEADER}\n{line}\nok 1.0 sim 2\n");
            let (done, damaged) = parse(&text);
            assert_eq!(damaged, [line.trim_end()], "{line:?}");
            assert_eq!(done.ok.keys().collect::<Vec<_>>(), ["sim 2"], "{line:?}");
        }
    }

    #[test]
    fn a_line_that_was_cut_off_is_damaged() {
        let text = format!("{HEADER}\nok 1.0 sim 1\nok 1.0 sim 10");
        let (done, damaged) = parse(&text);
        assert_eq!(done.ok.keys().collect::<Vec<_>>(), ["sim 1"]);
        assert_eq!(damaged, ["ok 1.0 sim 10"]);
    }

    #[test]
    fn a_file_without_the_header_is_no_state() {
        for text in ["", "ok 1.0 sim 1\n", "lockgate night 2\nok 1.0 sim 1\n"] {
            assert_eq!(Done::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_is_recorded_is_found_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut journal, done) = Journal::open(dir.path()).expect("a new state");
        assert_eq!(done, Done::default());
        journal.record("sim 1", 1.25, true).expect("recorded");
        journal.record("kube", 9.0, false).expect("recorded");
        assert!(Journal::open(dir.path()).is_err(), "a second night got the same state");
        drop(journal);
        let (_, done) = Journal::open(dir.path()).expect("the state of before");
        assert_eq!(done.ok, BTreeMap::from([("sim 1".to_owned(), 1.2)]));
    }

    #[test]
    fn a_torn_line_does_not_spoil_the_next_one() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("done.txt"), format!("{HEADER}\nok 1.0 sim 1\nok 1.0 si")).expect("written");
        let (mut journal, _) = Journal::open(dir.path()).expect("most of it reads");
        journal.record("sim 2", 2.0, true).expect("recorded");
        drop(journal);
        let text = fs::read_to_string(dir.path().join("done.txt")).expect("it reads");
        assert_eq!(text, format!("{HEADER}\nok 1.0 sim 1\nok 2.0 sim 2\n"));
        assert_eq!(peek(dir.path()).ok.keys().collect::<Vec<_>>(), ["sim 1", "sim 2"]);
    }

    #[test]
    fn a_damaged_file_is_kept_aside() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("done.txt"), b"\xff\xfe garbage").expect("written");
        let (_, done) = Journal::open(dir.path()).expect("begins anew");
        assert_eq!(done, Done::default());
        assert_eq!(fs::read(dir.path().join("done.damaged")).expect("kept"), b"\xff\xfe garbage");
        assert_eq!(fs::read_to_string(dir.path().join("done.txt")).expect("begun"), format!("{HEADER}\n"));
    }
}
