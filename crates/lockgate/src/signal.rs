//! Signals that ask the server to end, and ending by them.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

#[derive(Clone, Copy)]
pub(crate) enum StopSignal {
    Terminate,
    Interrupt,
}

impl StopSignal {
    pub(crate) async fn wait() -> StopSignal {
        let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = term.recv() => StopSignal::Terminate,
            _ = int.recv() => StopSignal::Interrupt,
        }
    }

    /// As Go names it, and so etcd's log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            StopSignal::Terminate => "terminated",
            StopSignal::Interrupt => "interrupt",
        }
    }

    /// Ends the process by the signal, as etcd does, so that whoever started it sees why it ended (143 or 130 in a shell). The
    /// kernel does not kill the first process of a container this way: that one ends with success.
    pub(crate) fn die(self) -> ExitCode {
        if std::process::id() == 1 {
            return ExitCode::SUCCESS;
        }
        let number = match self {
            StopSignal::Terminate => libc::SIGTERM,
            StopSignal::Interrupt => libc::SIGINT,
        };
        // SAFETY: both take plain numbers; no handler of ours runs any more, and the default one ends the process.
        unsafe {
            libc::signal(number, libc::SIG_DFL);
            libc::raise(number);
        }
        // Blocked by whoever started us.
        ExitCode::SUCCESS
    }
}
