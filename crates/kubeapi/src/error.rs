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
    #[error("{attempted} failed: {}", short(source))]
    Refused { attempted: String, source: Box<kube::Error> },
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
    Other,
}

impl ApiError {
    pub(crate) fn request(attempted: &str, source: http::Error) -> ApiError {
        ApiError::Request { attempted: attempted.to_owned(), source }
    }

    pub fn cause(&self) -> Cause {
        let ApiError::Refused { source, .. } = self else { return Cause::Other };
        match source.as_ref() {
            kube::Error::Api(status) => match status.code {
                404 => Cause::NotFound,
                409 if is_about_owners(status) => Cause::Owned,
                409 => Cause::Conflict,
                410 => Cause::Gone,
                _ => Cause::Other,
            },
            _ => Cause::Other,
        }
    }

    /// False if nobody answered, so that nothing is known of what would have been said.
    pub fn is_answer(&self) -> bool {
        matches!(self, ApiError::Refused { source, .. } if matches!(source.as_ref(), kube::Error::Api(_)))
    }
}

fn is_about_owners(status: &kube::core::Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "FieldManagerConflict")
}

/// The API's own message, where it gave one.
fn short(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
