//! Files that others renew while this runs: certificates and tokens.

use std::{fs, path::PathBuf, time::Duration};

use sha2::{Digest, Sha256};

use crate::{tls::Tls, token::Tokens};

/// Files are looked at so often. Volumes of secrets take longer to change.
pub const RELOAD_EVERY: Duration = Duration::from_secs(5);

/// Never returns. What cannot be used is told once, and what was read before stays in force.
pub async fn reload(tls: Option<Tls>, tokens: Option<Tokens>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        match tls.as_ref().map(Tls::reload) {
            Some(Ok(true)) => tracing::info!("the certificate was read anew"),
            Some(Err(error)) => tracing::warn!(error = chain(&error), "the certificate of before stays in use"),
            _ => {}
        }
        match tokens.as_ref().map(Tokens::reload) {
            Some(Ok(true)) => tracing::info!("tokens were read anew"),
            Some(Err(error)) => tracing::warn!(error = chain(&error), "the tokens of before stay in force"),
            _ => {}
        }
    }
}

/// What was in some files when they were looked at last.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    digests: Vec<Option<[u8; 32]>>,
}

impl Seen {
    /// True if the files are not what they were: by their bytes, as a renewal may keep size and time. A file that cannot be read is
    /// a content of its own, so that a complaint about it is made once.
    pub(crate) fn changes(&mut self, paths: &[&PathBuf]) -> bool {
        let digest = |path: &&PathBuf| fs::read(path).ok().map(|bytes| Sha256::digest(bytes).into());
        let now: Vec<_> = paths.iter().map(digest).collect();
        let changed = now != self.digests;
        self.digests = now;
        changed
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
