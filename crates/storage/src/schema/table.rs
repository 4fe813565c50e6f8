//! The schema as a table: every kind of key and every part of its value, with the version that brought it, how it is
//! encoded, and what is done with it on the way up to that version and on the way down below it.
//!
//! [`super::plan`] makes migrations from it; tools print it; `docs/storage-format.md` shows it.

use super::{
    Bucket, Version, alarm, auth, cluster, gate, lease, member, meta,
    version::{V3_5, V3_6, V3_8},
};

/// One kind of key.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub bucket: Bucket,
    pub key: Key,
    /// The first version that writes it; every version before 3.5 counts as 3.0.
    pub since: Version,
    pub encoding: Encoding,
    pub up: Up,
    pub down: Down,
    pub note: &'static str,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Plain(&'static str),
    /// An object with these keys and the versions that brought them.
    Json(&'static [(&'static str, Version)]),
    /// A message; its annotations say which version brought which field.
    Proto(&'static str),
}

/// A JSON key or a field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub name: &'static str,
    /// The number of a message's field.
    pub number: Option<u32>,
    pub since: Version,
}

/// What a file needs when it comes up to the version that brought a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Up {
    /// Nothing: a server writes it when it first has something to say.
    WhenUsed,
    /// It is set to the version that the file comes to, now and at every later step.
    Version,
}

/// What is done with it on the way down below that version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down {
    /// Nothing: no version that a file can be brought to is without it.
    Stays,
    Removed,
}

impl Row {
    /// The parts of its value, where it has parts.
    pub fn parts(&self) -> Vec<Part> {
        match self.encoding {
            Encoding::Plain(_) => Vec::new(),
            Encoding::Json(keys) => {
                keys.iter().map(|(name, since)| Part { name, number: None, since: *since }).collect()
            }
            Encoding::Proto(message) => proto::fields_named(message)
                .into_iter()
                .flatten()
                .map(|(name, number, since)| Part { name, number: Some(number), since })
                .collect(),
        }
    }
}

impl std::fmt::Display for Encoding {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Encoding::Plain(text) | Encoding::Proto(text) => text,
            Encoding::Json(_) => "JSON",
        })
    }
}

impl std::fmt::Display for Up {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Up::WhenUsed => "when used",
            Up::Version => "set",
        })
    }
}

impl std::fmt::Display for Down {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Down::Stays => "stays",
            Down::Removed => "removed",
        })
    }
}

/// What keys a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// This key alone.
    Named(&'static [u8]),
    /// Any key of the described form.
    Form(&'static str),
    /// Any key that begins so and goes on in the described form.
    Under(&'static [u8], &'static str),
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Key::Named(name) => f.write_str(&String::from_utf8_lossy(name)),
            Key::Form(form) => write!(f, "<{form}>"),
            Key::Under(prefix, form) => write!(f, "{}<{form}>", String::from_utf8_lossy(prefix)),
        }
    }
}

impl std::fmt::Display for Row {
    /// As a row of a Markdown table.
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Row { bucket, key, since, encoding, up, down, note } = self;
        write!(f, "| `{}` | `{key}` | {since} | {encoding} | {up} | {down} | {note} |", bucket.name())
    }
}

const V3_0: Version = Version::new(3, 0);

const V3_4: Version = Version::new(3, 4);

const EMPTY: Encoding = Encoding::Plain("empty");
const NUMBER: Encoding = Encoding::Plain("u64, big endian");
const REVISION: Encoding = Encoding::Plain("revision, 17 bytes");
const VERSION: Encoding = Encoding::Plain("text X.Y.0");
const MEMBER: Encoding =
    Encoding::Json(&[("id", V3_0), ("peerURLs", V3_0), ("isLearner", V3_4), ("name", V3_0), ("clientURLs", V3_0)]);
const CONFIGURATION: Encoding = Encoding::Json(&[
    ("voters", V3_5),
    ("learners", V3_5),
    ("voters_outgoing", V3_5),
    ("learners_next", V3_5),
    ("auto_leave", V3_5),
]);
const JOB: Encoding = Encoding::Json(&[("target-version", V3_5), ("enabled", V3_5)]);

/// Every kind of key there is, by bucket.
pub const ROWS: &[Row] = &[
    form(Bucket::Alarm, "etcdserverpb.AlarmMember", V3_0, EMPTY, "an active alarm of a member"),
    named(Bucket::Auth, auth::ENABLED, V3_0, Encoding::Plain("1 byte, 0 or 1"), "whether requests need a user"),
    named(Bucket::Auth, auth::REVISION, V3_0, NUMBER, "counts changes of users and roles"),
    form(Bucket::AuthRoles, "role name", V3_0, Encoding::Proto("authpb.Role"), "a role and its permissions"),
    form(Bucket::AuthUsers, "user name", V3_0, Encoding::Proto("authpb.User"), "a user, its roles and password hash"),
    named(Bucket::Cluster, cluster::CLUSTER_VERSION, V3_0, VERSION, "what all members agreed on"),
    named(Bucket::Cluster, cluster::DOWNGRADE, V3_5, JOB, "the downgrade job"),
    of_gate(Key::Named(gate::GATE), "membershippb.FeatureGateRecord", "the cluster features that are on"),
    of_gate(
        Key::Under(gate::HISTORY, "log index, 16 hex digits"),
        "membershippb.FeatureGateChange",
        "what an entry switched",
    ),
    of_gate(
        Key::Under(gate::PROPOSAL, "member id, 16 hex digits"),
        "membershippb.FeatureGateProposalRecord",
        "what a member wants",
    ),
    form(
        Bucket::Key,
        "revision, 17 or 18 bytes",
        V3_0,
        Encoding::Proto("mvccpb.KeyValue"),
        "a change; 18 bytes: a deletion",
    ),
    form(Bucket::Lease, "id, i64 big endian", V3_0, Encoding::Proto("leasepb.Lease"), "a granted lease"),
    form(Bucket::Members, "member id in hex", V3_0, MEMBER, "a member"),
    form(
        Bucket::MembersRemoved,
        "member id in hex",
        V3_0,
        Encoding::Plain("text removed"),
        "an id that can never return",
    ),
    named(Bucket::Meta, meta::CONF_STATE, V3_5, CONFIGURATION, "voters and learners at the consistent index"),
    named(Bucket::Meta, meta::CONSISTENT_INDEX, V3_0, NUMBER, "the last entry whose changes are here"),
    named(Bucket::Meta, meta::FINISHED_COMPACT_REV, V3_0, REVISION, "the last completed compaction"),
    named(Bucket::Meta, meta::SCHEDULED_COMPACT_REV, V3_0, REVISION, "the last begun compaction"),
    Row {
        up: Up::Version,
        down: Down::Removed,
        ..named(Bucket::Meta, meta::STORAGE_VERSION, V3_6, VERSION, "the version whose fields are here")
    },
    named(Bucket::Meta, meta::TERM, V3_5, NUMBER, "the term of the consistent index"),
];

/// The row of a key, if the schema knows it.
pub fn row_of(bucket: Bucket, key: &[u8]) -> Option<&'static Row> {
    ROWS.iter().filter(|r| r.bucket == bucket).find(|r| match r.key {
        Key::Named(name) => name == key,
        Key::Form(_) => has_form(bucket, key),
        Key::Under(prefix, _) => gate::is_key(prefix, key),
    })
}

fn has_form(bucket: Bucket, key: &[u8]) -> bool {
    match bucket {
        Bucket::Alarm => alarm::decode(key).is_ok(),
        Bucket::Key => super::RevisionKey::decode(key).is_some(),
        Bucket::Lease => lease::is_key(key),
        Bucket::Members | Bucket::MembersRemoved => member::id_of(bucket, key).is_ok(),
        Bucket::AuthRoles | Bucket::AuthUsers => true,
        Bucket::Auth | Bucket::Cluster | Bucket::Meta => false,
    }
}

const fn named(bucket: Bucket, key: &'static [u8], since: Version, encoding: Encoding, note: &'static str) -> Row {
    Row { bucket, key: Key::Named(key), since, encoding, up: Up::WhenUsed, down: Down::Stays, note }
}

const fn form(bucket: Bucket, key: &'static str, since: Version, encoding: Encoding, note: &'static str) -> Row {
    Row { bucket, key: Key::Form(key), since, encoding, up: Up::WhenUsed, down: Down::Stays, note }
}

/// A row of the feature gate.
const fn of_gate(key: Key, message: &'static str, note: &'static str) -> Row {
    let (encoding, up, down) = (Encoding::Proto(message), Up::WhenUsed, Down::Removed);
    Row { bucket: Bucket::Cluster, key, since: V3_8, encoding, up, down, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_has_rows_in_order() {
        for bucket in Bucket::ALL {
            assert!(ROWS.iter().any(|r| r.bucket == bucket), "{}", bucket.name());
        }
        let names: Vec<_> = ROWS.iter().map(|r| (r.bucket, r.key.to_string())).collect();
        assert!(names.windows(2).all(|w| w[0] < w[1]));
    }

    #[test]
    fn the_document_has_the_same_table() {
        let doc = include_str!("../../../../docs/storage-format.md");
        let table: Vec<_> = ROWS.iter().map(Row::to_string).collect();
        assert!(doc.contains(&table.join("\n")), "docs/storage-format.md should hold:\n{}", table.join("\n"));
    }

    #[test]
    fn every_message_is_known_and_rows_say_how_to_leave_them() {
        for row in ROWS {
            let parts = row.parts();
            assert!(matches!(row.encoding, Encoding::Plain(_)) || !parts.is_empty(), "{row}: no parts");
            // 3.5 is the lowest version a file can be brought to.
            assert_eq!(row.down == Down::Removed, row.since > V3_5, "{row}");
        }
    }

    #[test]
    fn keys_find_their_rows() {
        assert_eq!(row_of(Bucket::Meta, b"term").map(|r| r.since), Some(V3_5));
        assert_eq!(
            row_of(Bucket::Lease, &7_i64.to_be_bytes()).map(|r| r.encoding),
            Some(Encoding::Proto("leasepb.Lease"))
        );
        assert!(row_of(Bucket::Meta, b"other").is_none());
        assert!(row_of(Bucket::Lease, b"short").is_none());
        assert!(row_of(Bucket::Key, b"k").is_none());
    }
}
