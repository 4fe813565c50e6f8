//! A bar on standard error for work that takes long; nothing where that is not a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that counts bytes up to `total`, and is gone once dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    drawn: u64,
}

/// Telling the bar more often costs more than it shows.
const STEP_BYTES: u64 = 4 << 20;

impl Progress {
    pub(crate) fn bytes(what: &'static str, total: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let template = "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what);
        Progress { bar, drawn: 0 }
    }

    /// For work whose end is not known in advance.
    pub(crate) fn spinner(what: &'static str) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress { bar, drawn: 0 }
    }

    /// `true` about every [`STEP_BYTES`], when it is time for other things that are done now and then.
    pub(crate) fn set(&mut self, done: u64) -> bool {
        let step = done >= self.drawn + STEP_BYTES;
        if step {
            self.drawn = done;
            self.bar.set_position(done);
        }
        step
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
