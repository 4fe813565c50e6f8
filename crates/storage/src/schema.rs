//! The schema table: the only code that names buckets and keys.

pub mod meta;
mod revision;

pub use meta::DecodeError;
pub use revision::RevisionKey;

/// A bucket of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Bucket {
    Alarm,
    Auth,
    AuthRoles,
    AuthUsers,
    Cluster,
    Key,
    Lease,
    Members,
    MembersRemoved,
    Meta,
}

impl Bucket {
    pub const ALL: [Bucket; 10] = [
        Bucket::Alarm,
        Bucket::Auth,
        Bucket::AuthRoles,
        Bucket::AuthUsers,
        Bucket::Cluster,
        Bucket::Key,
        Bucket::Lease,
        Bucket::Members,
        Bucket::MembersRemoved,
        Bucket::Meta,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Bucket::Alarm => "alarm",
            Bucket::Auth => "auth",
            Bucket::AuthRoles => "authRoles",
            Bucket::AuthUsers => "authUsers",
            Bucket::Cluster => "cluster",
            Bucket::Key => "key",
            Bucket::Lease => "lease",
            Bucket::Members => "members",
            Bucket::MembersRemoved => "members_removed",
            Bucket::Meta => "meta",
        }
    }
}
