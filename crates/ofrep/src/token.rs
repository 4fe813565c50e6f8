//! Who may ask: whoever has one of the tokens, if there are any.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use axum::http::{HeaderMap, header::AUTHORIZATION};
use sha2::{Digest, Sha256};

use crate::reload::Seen;

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("failed to read the token file {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the token file {} has no token; write one on each line", .0.display())]
    Empty(PathBuf),
}

/// Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// To compare digests tells nothing about a token by the time it takes.
    digests: Arc<RwLock<BTreeSet<[u8; 32]>>>,
    file: Option<Arc<(PathBuf, Mutex<Seen>)>>,
}

impl Tokens {
    /// One on each line. A file without any is an error: nobody could ask, or everybody.
    pub fn read(path: &Path) -> Result<Tokens, TokenError> {
        let tokens = Tokens { file: Some(Arc::new((path.to_owned(), Mutex::default()))), ..Tokens::default() };
        tokens.reload()?;
        if tokens.is_empty() { Err(TokenError::Empty(path.to_owned())) } else { Ok(tokens) }
    }

    pub fn new<'a>(tokens: impl IntoIterator<Item = &'a str>) -> Tokens {
        Tokens { digests: Arc::new(RwLock::new(digests(tokens))), file: None }
    }

    /// Reads the file again if it has changed; true if it had. A file that has become empty is no error here: somebody took all
    /// tokens back, and from then on nobody may ask.
    pub(crate) fn reload(&self) -> Result<bool, TokenError> {
        let Some((path, seen)) = self.file.as_deref() else { return Ok(false) };
        if !seen.lock().unwrap_or_else(PoisonError::into_inner).changes(&[path]) {
            return Ok(false);
        }
        let text = fs::read_to_string(path).map_err(|source| TokenError::Read { path: path.clone(), source })?;
        *self.digests.write().unwrap_or_else(PoisonError::into_inner) = digests(text.lines());
        if self.is_empty() {
            tracing::warn!(path = %path.display(), "the token file has no token: nobody may ask");
        }
        Ok(true)
    }

    fn is_empty(&self) -> bool {
        self.digests.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// As the protocol has it: a bearer token, or an API key.
    pub(crate) fn allow(&self, headers: &HeaderMap) -> bool {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = text(AUTHORIZATION.as_str()).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token)
        });
        let digests = self.digests.read().unwrap_or_else(PoisonError::into_inner);
        bearer.or_else(|| text("x-api-key")).is_some_and(|token| digests.contains(&digest(token.trim())))
    }
}

fn digests<'a>(tokens: impl IntoIterator<Item = &'a str>) -> BTreeSet<[u8; 32]> {
    tokens.into_iter().map(str::trim).filter(|token| !token.is_empty()).map(digest).collect()
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
