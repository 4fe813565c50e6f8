//! What can go wrong, with what was attempted.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("failed to use kubeconfig {}", path.display())]
    Kubeconfig { path: PathBuf, source: kube::config::KubeconfigError },
    #[error("found no way to the API: neither a kubeconfig nor a service account")]
    Infer(#[source] kube::config::InferConfigError),
    #[error("failed to make a client of the API")]
    Client(#[source] kube::Error),
}

#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("{attempted} is no request")]
    Request { attempted: String, source: http::Error },
    /// The cause is told in the message, and is no source: who prints the chain would print it twice, and the client's own
    /// words for what the API said are no text for people.
    #[error("{attempted} failed: {}", short(cause))]
    Refused { attempted: String, cause: Box<kube::Error> },
    #[error("{attempted} was answered with something that is no list")]
    NotAList { attempted: String },
    #[error("{attempted} was not answered within {seconds} seconds")]
    TooLate { attempted: String, seconds: u64 },
}

/// What a caller may do something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    NotFound,
    /// The object has moved on, or is there already.
    Conflict,
    /// Fields are someone else's, and were not to be taken.
    Owned,
    /// The place to watch from is gone.
    Gone,
    /// The object as it would be does not fit its definition.
    Invalid,
    Other,
}

impl ApiError {
    pub(crate) fn request(attempted: &str, source: http::Error) -> ApiError {
        ApiError::Request { attempted: attempted.to_owned(), source }
    }

    pub fn cause(&self) -> Cause {
        let ApiError::Refused { cause, .. } = self else { return Cause::Other };
        match cause.as_ref() {
            kube::Error::Api(status) => match status.code {
                404 => Cause::NotFound,
                409 if is_about_owners(status) => Cause::Owned,
                409 => Cause::Conflict,
                410 => Cause::Gone,
                422 => Cause::Invalid,
                _ => Cause::Other,
            },
            _ => Cause::Other,
        }
    }

    /// False if nobody answered, so that nothing is known of what would have been said.
    pub fn is_answer(&self) -> bool {
        matches!(self, ApiError::Refused { cause, .. } if matches!(cause.as_ref(), kube::Error::Api(_)))
    }
}

fn is_about_owners(status: &kube::core::Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "FieldManagerConflict")
}

/// The API's own message, where it gave one; else all that is known of what went wrong on the way.
fn short(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Api(status) => format!("{} {}", status.code, status.reason).trim().to_owned(),
        other => chain(other),
    }
}

/// Each cause once: many errors repeat the one below them.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(&format!(": {said}"));
        }
        source = cause.source();
    }
    text
}
