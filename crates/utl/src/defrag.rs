//! `defrag`: rewrites the database of a stopped member without its free pages.

use std::{path::Path, time::Duration};

use serde_json::json;
use storage::{Backend, DefragReport, Options};

use crate::{failure::open_error, log, progress::Progress, status::check_exists, survey::settle};

pub(crate) fn defrag(data_dir: &Path, lock_timeout: Option<Duration>) -> anyhow::Result<()> {
    let dir = node::DataDir::new(data_dir, None);
    settle(&dir)?;
    let path = dir.db();
    check_exists(&path)?;
    let backend = Backend::open(&path, Options { lock_timeout, ..Options::default() }).map_err(open_error)?;
    let shown = path.display().to_string();
    log::info(
        "defragmenting",
        &[
            ("path", json!(shown)),
            ("current-db-size-bytes", json!(backend.size())),
            ("current-db-size", json!(cli::size(backend.size()))),
            ("current-db-size-in-use-bytes", json!(backend.size_in_use())),
            ("current-db-size-in-use", json!(cli::size(backend.size_in_use()))),
        ],
    );
    let progress = Progress::spinner("defragmenting");
    let report = backend.defrag()?;
    drop(progress);
    backend.close()?;
    tell(&shown, &report);
    Ok(())
}

fn tell(path: &str, report: &DefragReport) {
    let diff = |after: u64, before: u64| after as i64 - before as i64;
    log::info(
        "finished defragmenting directory",
        &[
            ("path", json!(path)),
            ("current-db-size-bytes-diff", json!(diff(report.size_after, report.size_before))),
            ("current-db-size-bytes", json!(report.size_after)),
            ("current-db-size", json!(cli::size(report.size_after))),
            ("current-db-size-in-use-bytes-diff", json!(diff(report.size_in_use_after, report.size_in_use_before))),
            ("current-db-size-in-use-bytes", json!(report.size_in_use_after)),
            ("current-db-size-in-use", json!(cli::size(report.size_in_use_after))),
            ("took", json!(format!("{:?}", report.took))),
        ],
    );
}
