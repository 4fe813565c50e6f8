//! What to do about a change: leave the process (most programs do not react cleanly at run time), ask a hook, or only tell.

use std::{fmt, pin::Pin, process, time::Duration};

use crate::follow::Change;

type Last = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;
type Hook = Box<dyn FnMut(&Change) -> Decision + Send>;

/// What a hook says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The program goes on with the new snapshot.
    Handled,
    /// It cannot: it leaves after all.
    Restart,
}

pub enum OnChange {
    /// Leave the process with code 0; whoever runs it starts it again.
    Leave,
    Hook(Hook),
    /// Only [`crate::Gates::subscribe`] tells.
    Notify,
}

/// How to leave.
pub struct Leave {
    /// Up to this long is waited, by chance, so that not all programs of a cluster start at once.
    pub jitter_max: Duration,
    /// How long the last work may take.
    pub grace: Duration,
    /// The last work, such as giving a lease back, so that the next need not wait for it.
    pub last: Option<Last>,
    /// Ends the process; tests end otherwise.
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
