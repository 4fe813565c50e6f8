//! The schema as a table, for tools and for review.

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
    pub encoding: &'static str,
    pub note: &'static str,
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
        let Row { bucket, key, since, encoding, note } = self;
        write!(f, "| `{}` | `{key}` | {since} | {encoding} | {note} |", bucket.name())
    }
}

const V3_0: Version = Version::new(3, 0);

/// Every kind of key there is, by bucket.
pub const ROWS: &[Row] = &[
    form(Bucket::Alarm, "etcdserverpb.AlarmMember", V3_0, "empty", "an active alarm of a member"),
    named(Bucket::Auth, auth::ENABLED, V3_0, "1 byte, 0 or 1", "whether requests need a user"),
    named(Bucket::Auth, auth::REVISION, V3_0, "u64, big endian", "counts changes of users and roles"),
    form(Bucket::AuthRoles, "role name", V3_0, "authpb.Role", "a role and its permissions"),
    form(Bucket::AuthUsers, "user name", V3_0, "authpb.User", "a user, its roles and password hash"),
    named(Bucket::Cluster, cluster::CLUSTER_VERSION, V3_0, "text X.Y.0", "what all members agreed on"),
    named(Bucket::Cluster, cluster::DOWNGRADE, V3_5, "JSON", "the downgrade job"),
    named(Bucket::Cluster, gate::GATE, V3_8, "membershippb.FeatureGateRecord", "the cluster features that are on"),
    under(gate::HISTORY, "log index, 16 hex digits", "membershippb.FeatureGateChange", "what an entry switched"),
    under(gate::PROPOSAL, "member id, 16 hex digits", "membershippb.FeatureGateProposalRecord", "what a member wants"),
    form(Bucket::Key, "revision, 17 or 18 bytes", V3_0, "mvccpb.KeyValue", "a change; 18 bytes: a deletion"),
    form(Bucket::Lease, "id, i64 big endian", V3_0, "leasepb.Lease", "a granted lease"),
    form(Bucket::Members, "member id in hex", V3_0, "JSON", "a member"),
    form(Bucket::MembersRemoved, "member id in hex", V3_0, "text removed", "an id that can never return"),
    named(Bucket::Meta, meta::CONF_STATE, V3_5, "JSON", "voters and learners at the consistent index"),
    named(Bucket::Meta, meta::CONSISTENT_INDEX, V3_0, "u64, big endian", "the last entry whose changes are here"),
    named(Bucket::Meta, meta::FINISHED_COMPACT_REV, V3_0, "revision, 17 bytes", "the last completed compaction"),
    named(Bucket::Meta, meta::SCHEDULED_COMPACT_REV, V3_0, "revision, 17 bytes", "the last begun compaction"),
    named(Bucket::Meta, meta::STORAGE_VERSION, V3_6, "text X.Y.0", "the version whose fields are here"),
    named(Bucket::Meta, meta::TERM, V3_5, "u64, big endian", "the term of the consistent index"),
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

const fn named(bucket: Bucket, key: &'static [u8], since: Version, encoding: &'static str, note: &'static str) -> Row {
    Row { bucket, key: Key::Named(key), since, encoding, note }
}

const fn form(bucket: Bucket, key: &'static str, since: Version, encoding: &'static str, note: &'static str) -> Row {
    Row { bucket, key: Key::Form(key), since, encoding, note }
}

/// A row of the feature gate.
const fn under(prefix: &'static [u8], form: &'static str, encoding: &'static str, note: &'static str) -> Row {
    Row { bucket: Bucket::Cluster, key: Key::Under(prefix, form), since: V3_8, encoding, note }
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
    fn keys_find_their_rows() {
        assert_eq!(row_of(Bucket::Meta, b"term").map(|r| r.since), Some(V3_5));
        assert_eq!(row_of(Bucket::Lease, &7_i64.to_be_bytes()).map(|r| r.encoding), Some("leasepb.Lease"));
        assert!(row_of(Bucket::Meta, b"other").is_none());
        assert!(row_of(Bucket::Lease, b"short").is_none());
        assert!(row_of(Bucket::Key, b"k").is_none());
    }
}
