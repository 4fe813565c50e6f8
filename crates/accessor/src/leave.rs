//! What to do about a change: leave the process (most programs do not react cleanly at run time), ask a hook, or only tell.

use std::{fmt, pin::Pin, process, time::Duration};

use crate::follow::Change;

type Last = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;
type Hook = Box<dyn FnMut(&Change) -> Decision + Send>;

/// The result of a hook that was called for a change of gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The program continues with the new snapshot.
    Handled,
    /// The program leaves, to be started again.
    Restart,
}

/// The reaction to a change of gates.
pub(crate) enum OnChange {
    /// Ends the process with code 0. Its supervisor is expected to start it again.
    Leave,
    /// Calls a hook, which decides; see [`crate::Builder::hook`].
    Hook(Hook),
    /// Continues; [`crate::Gates::subscribe`] reports the change.
    Notify,
}

/// The steps of leaving the process after a change of gates.
pub struct Leave {
    /// Upper bound of a random delay, so that the programs of a cluster do not all restart at once.
    pub jitter_max: Duration,
    /// Time limit for `last`.
    pub grace: Duration,
    /// The last task before the exit, such as releasing a leader lease so that the next instance
    /// need not wait for it.
    pub last: Option<Last>,
    /// Ends the process with this exit code. Tests replace it.
    pub exit: Box<dyn FnMut(i32) + Send>,
}

impl Default for Leave {
    fn default() -> Leave {
        let exit = Box::new(|code| process::exit(code));
        Leave { jitter_max: Duration::from_secs(5), grace: Duration::from_secs(10), last: None, exit }
    }
}

impl fmt::Debug for OnChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OnChange::Leave => "Leave",
            OnChange::Hook(_) => "Hook",
            OnChange::Notify => "Notify",
        })
    }
}

impl Leave {
    pub(crate) async fn leave(&mut self) {
        tokio::time::sleep(part_of(self.jitter_max)).await;
        if let Some(last) = self.last.take()
            && tokio::time::timeout(self.grace, last()).await.is_err()
        {
            tracing::warn!(grace = ?self.grace, "the last work was not done in time");
        }
        (self.exit)(0);
    }
}

/// A part of the time, by chance.
fn part_of(max: Duration) -> Duration {
    let mut bytes = [0; 2];
    // Without a source of chance all leave at once, which is bad manners and no fault.
    let _ = getrandom::fill(&mut bytes);
    max * u32::from(u16::from_le_bytes(bytes)) / u32::from(u16::MAX)
}
