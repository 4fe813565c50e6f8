//! How a command ends when it fails: etcdctl's exit codes, and one line on standard error.

use std::{error::Error as _, fmt::Display};

/// The end of a command that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub code: u8,
    /// `None` if the user has been told already.
    message: Option<String>,
    /// What was behind a timeout.
    cause: Option<String>,
}

impl Failure {
    pub(crate) const BAD_CONNECTION: u8 = 2;

    fn new(code: u8, message: impl Display) -> Failure {
        Failure { code, message: Some(message.to_string()), cause: None }
    }

    pub(crate) fn error(message: impl Display) -> Failure {
        Failure::new(1, message)
    }

    pub(crate) fn bad_connection(message: impl Display) -> Failure {
        Failure::new(Failure::BAD_CONNECTION, message)
    }

    /// What was typed into `txn` or `watch -i` makes no sense.
    pub(crate) fn invalid_input(message: impl Display) -> Failure {
        Failure::new(3, message)
    }

    /// A known flag with a value that is not supported.
    pub(crate) fn bad_feature(message: impl Display) -> Failure {
        Failure::new(4, message)
    }

    pub(crate) fn interrupted(message: impl Display) -> Failure {
        Failure::new(5, message)
    }

    pub(crate) fn bad_args(message: impl Display) -> Failure {
        Failure::new(128, message)
    }

    /// Everything has been said.
    pub(crate) fn told(code: u8) -> Failure {
        Failure { code, message: None, cause: None }
    }

    /// Says what was being done when it failed.
    pub(crate) fn while_doing(mut self, what: &str) -> Failure {
        self.message = self.message.map(|message| format!("{what} ({message})"));
        self
    }

    pub(crate) fn with_code(mut self, code: u8) -> Failure {
        self.code = code;
        self
    }

    pub(crate) fn text(&self) -> &str {
        self.message.as_deref().unwrap_or_default()
    }

    pub(crate) fn tell_cause(&self) {
        tell_cause(self.cause.as_deref());
    }

    pub(crate) fn tell(&self) {
        self.tell_cause();
        if let Some(message) = &self.message {
            eprintln!("Error: {message}");
        }
    }
}

/// "context deadline exceeded" alone helps nobody: a log line says what stood in the way.
pub(crate) fn tell_cause(cause: Option<&str>) {
    if let Some(cause) = cause {
        eprintln!(
            "{{\"level\":\"warn\",\"msg\":\"the call did not get through\",\"error\":{}}}",
            crate::text::json(cause)
        );
    }
}

pub(crate) fn cause(error: &client::Error) -> Option<String> {
    error.source().map(ToString::to_string)
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Failure {
        Failure { cause: cause(&error), ..Failure::error(&error) }
    }
}
