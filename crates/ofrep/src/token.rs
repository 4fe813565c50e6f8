//! Who may ask: whoever has one of the tokens, if there are any.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use axum::http::{HeaderMap, header::AUTHORIZATION};
use sha2::{Digest, Sha256};

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("failed to read the token file {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the token file {} has no token; write one on each line", .0.display())]
    Empty(PathBuf),
}

/// Digests of tokens: to compare those tells nothing about a token by the time it takes.
#[derive(Clone, Debug)]
pub struct Tokens {
    digests: BTreeSet<[u8; 32]>,
}

impl Tokens {
    /// One on each line. A file without any is an error: nobody could ask, or everybody.
    pub fn read(path: &Path) -> Result<Tokens, TokenError> {
        let text = fs::read_to_string(path).map_err(|source| TokenError::Read { path: path.to_owned(), source })?;
        let tokens = Tokens::new(text.lines());
        if tokens.digests.is_empty() { Err(TokenError::Empty(path.to_owned())) } else { Ok(tokens) }
    }

    pub fn new<'a>(tokens: impl IntoIterator<Item = &'a str>) -> Tokens {
        let tokens = tokens.into_iter().map(str::trim).filter(|token| !token.is_empty());
        Tokens { digests: tokens.map(digest).collect() }
    }

    /// As the protocol has it: a bearer token, or an API key.
    pub(crate) fn allow(&self, headers: &HeaderMap) -> bool {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = text(AUTHORIZATION.as_str()).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token)
        });
        bearer.or_else(|| text("x-api-key")).is_some_and(|token| self.digests.contains(&digest(token.trim())))
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
