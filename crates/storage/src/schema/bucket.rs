//! The buckets of the file.

/// A bucket of the file. All ten exist in every file that etcd 3.5 or newer has started on.
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
    /// In the order in which the file holds them, which is the order of their names.
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

    pub fn from_name(name: &[u8]) -> Option<Bucket> {
        Bucket::ALL.into_iter().find(|b| b.name().as_bytes() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_in_the_order_of_names_and_of_numbers() {
        assert!(Bucket::ALL.windows(2).all(|w| w[0].name() < w[1].name()));
        assert!(Bucket::ALL.iter().enumerate().all(|(i, b)| *b as usize == i));
        assert_eq!(Bucket::from_name(b"members_removed"), Some(Bucket::MembersRemoved));
        assert_eq!(Bucket::from_name(b"test"), None);
    }
}
