//! A directory for each scenario, which is kept if the scenario fails.

use std::{
    any::Any,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use anyhow::{Result, anyhow};

use super::fetch::files_below;

/// Runs a scenario in a directory of its own. If it fails or panics, the last lines of all logs in the directory are
/// printed, and the directory is kept.
pub(crate) fn in_own_dir<T>(scenario: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let dir = harness::tempdir();
    let result = catch_unwind(AssertUnwindSafe(|| scenario(dir.path()))).unwrap_or_else(|panic| Err(as_error(&*panic)));
    result.map_err(|error| {
        print_logs(dir.path());
        error.context(format!("data dirs and logs are kept in {}", harness::keep(dir).display()))
    })
}

/// The harness panics if it waits in vain.
fn as_error(panic: &(dyn Any + Send)) -> anyhow::Error {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    anyhow!("{}", text.unwrap_or("the scenario panicked"))
}

fn print_logs(dir: &Path) {
    for path in files_below(dir).unwrap_or_default() {
        let bytes = fs::read(&path).unwrap_or_default();
        if path.extension().is_some_and(|extension| extension == "log") && !bytes.is_empty() {
            let tail = harness::tail(&String::from_utf8_lossy(&bytes));
            println!("--- last lines of {} ---\n{tail}\n--- end ---", path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Removes the kept directory, whose path the error names.
    fn remove(error: &anyhow::Error) {
        let text = error.to_string();
        fs::remove_dir_all(text.rsplit_once(' ').expect("a path").1).expect("a directory that was kept");
    }

    #[test]
    fn errors_and_panics_keep_the_directory() {
        assert!(in_own_dir(|dir| Ok(dir.is_dir())).expect("it succeeds"));
        let error = in_own_dir::<()>(|_| Err(anyhow!("broken"))).expect_err("it fails");
        assert!(format!("{error:#}").ends_with("broken"), "{error:#}");
        remove(&error);
        let error = in_own_dir::<()>(|_| panic!("gave up")).expect_err("it panics");
        assert!(format!("{error:#}").ends_with("gave up"), "{error:#}");
        remove(&error);
    }
}
