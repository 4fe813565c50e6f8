//! Names that etcd has retired: ignored for ever, renamed in 3.7, or left over in old config files.

/// Flags of etcd 0.x that it still takes with or without a value and ignores.
pub(super) const IGNORED_FLAGS: &[&str] = &[
    "cluster-active-size",
    "cluster-remove-delay",
    "cluster-sync-interval",
    "config",
    "force",
    "max-result-buffer",
    "max-retry-attempts",
    "peer-heartbeat-interval",
    "peer-election-timeout",
    "retry-interval",
    "snapshot",
    "v",
    "vv",
    "test.coverprofile",
    "test.outputdir",
];

/// What took the place of an `experimental-*` flag of etcd 3.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Successor {
    Flag(&'static str),
    Gate(&'static str),
}

const EXPERIMENTAL_GATES: &[(&str, &str)] = &[
    ("compact-hash-check-enabled", "CompactHashCheck"),
    ("enable-lease-checkpoint", "LeaseCheckpoint"),
    ("enable-lease-checkpoint-persist", "LeaseCheckpointPersist"),
    ("initial-corrupt-check", "InitialCorruptCheck"),
    ("set-member-localaddr", "SetMemberLocalAddr"),
    ("stop-grpc-service-on-defrag", "StopGRPCServiceOnDefrag"),
    ("txn-mode-write-with-shared-buffer", "TxnModeWriteWithSharedBuffer"),
];

/// The successor of an `experimental-*` name; all but the gates kept their name without the prefix.
pub(super) fn successor(name: &str) -> Option<Successor> {
    let bare = name.strip_prefix("experimental-")?;
    if let Some((_, gate)) = EXPERIMENTAL_GATES.iter().find(|(old, _)| *old == bare) {
        return Some(Successor::Gate(gate));
    }
    super::table::find(bare).map(|flag| Successor::Flag(flag.name))
}

impl std::fmt::Display for Successor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Successor::Flag(name) => write!(f, "--{name}"),
            Successor::Gate(name) => write!(f, "--feature-gates={name}=true"),
        }
    }
}

/// Top-level keys of older config files. `None`: the value does not matter. `Some`: only this one is harmless.
pub(super) const IGNORED_KEYS: &[(&str, Option<&str>)] = &[
    ("discovery", Some("")),
    ("discovery-fallback", None),
    ("discovery-proxy", None),
    ("enable-v2", Some("false")),
    ("proxy", Some("off")),
    ("proxy-dial-timeout", None),
    ("proxy-failure-wait", None),
    ("proxy-read-timeout", None),
    ("proxy-refresh-interval", None),
    ("proxy-write-timeout", None),
];

/// The known name closest to a mistyped one, if any is close.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance over bytes.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_name() {
        let known = || ["name", "data-dir", "wal-dir", "listen-client-urls"].into_iter();
        assert_eq!(nearest("nam", known()), Some("name"));
        assert_eq!(nearest("datadir", known()), Some("data-dir"));
        assert_eq!(nearest("listen-clients-url", known()), Some("listen-client-urls"));
        assert_eq!(nearest("quota", known()), None);
    }

    #[test]
    fn experimental_names() {
        assert_eq!(successor("experimental-memory-mlock"), Some(Successor::Flag("memory-mlock")));
        assert_eq!(successor("experimental-initial-corrupt-check"), Some(Successor::Gate("InitialCorruptCheck")));
        assert_eq!(successor("experimental-unheard-of"), None);
        assert_eq!(successor("name"), None);
    }
}
