//! How a command ends when it fails: etcdutl's exit codes, and what is told on standard error.

use std::{fmt::Display, path::Path};

/// The end of a command that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub code: u8,
    /// `None` if the user has been told already.
    message: Option<String>,
}

impl Failure {
    fn new(code: u8, message: impl Display) -> Failure {
        Failure { code, message: Some(message.to_string()) }
    }

    pub(crate) fn error(message: impl Display) -> Failure {
        Failure::new(1, message)
    }

    /// A known flag with a value that is not supported.
    pub(crate) fn bad_feature(message: impl Display) -> Failure {
        Failure::new(4, message)
    }

    pub(crate) fn bad_args(message: impl Display) -> Failure {
        Failure::new(128, message)
    }

    /// Everything has been said.
    pub(crate) fn told(code: u8) -> Failure {
        Failure { code, message: None }
    }

    pub(crate) fn tell(&self) {
        if let Some(message) = &self.message {
            eprintln!("Error: {message}");
        }
    }
}

/// An error with everything behind it, in one line.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::error(format!("{error:#}"))
    }
}

/// What Go says when a call on a path fails, such as `stat a: no such file or directory`.
pub(crate) fn path_error(call: &str, path: &Path, error: &std::io::Error) -> anyhow::Error {
    let text = error.to_string();
    // Rust adds the number, and begins with a capital.
    let text = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    anyhow::anyhow!("{call} {}: {text}", path.display())
}

/// A file that cannot be opened as a database. Scripts know the beginning of the text for one that is none.
pub(crate) fn open_error(error: storage::OpenError) -> anyhow::Error {
    use bolt::OpenError::{BothMetasDamaged, NotBolt, Truncated, Version, Walk};
    match error {
        storage::OpenError::File {
            source:
                source @ (NotBolt { .. } | Version { .. } | BothMetasDamaged { .. } | Truncated { .. } | Walk { .. }),
            ..
        } => anyhow::Error::new(source).context("invalid database"),
        storage::OpenError::File { path, source: bolt::OpenError::Io { source, .. } }
            if source.kind() == std::io::ErrorKind::IsADirectory =>
        {
            anyhow::anyhow!("invalid database: {} is a directory, a file is needed", path.display())
        }
        error => error.into(),
    }
}
