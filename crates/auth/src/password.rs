//! Passwords as they are stored.
//!
//! Since 3.5 whoever proposes a password hashes it, and entries carry the hash. Before, entries carried the password, and
//! every member hashed it with a salt of its own: the only bytes of the file that may differ between members.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bytes::Bytes;
use proto::etcdserverpb::InternalRaftRequest;

use crate::Error;

/// Random bytes, from whoever applies.
pub type Salt = [u8; 16];

/// What `--bcrypt-cost` is unless it is given, and instead of one that bcrypt does not know.
pub const COST_DEFAULT: u32 = 10;
/// What bcrypt knows.
pub const COSTS: std::ops::RangeInclusive<u32> = 4..=31;
/// Go refuses longer ones; bcrypt would look at the first 72 bytes alone.
const PASSWORD_BYTES_MAX: usize = 72;

/// As Go reads it: padded, and whatever the unused bits of the last character are.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// Whether the request carries a password that has to be hashed, and so needs a salt.
pub fn carries_plain(r: &InternalRaftRequest) -> bool {
    let is_plain = |password: &str, hashed: &str| !password.is_empty() && hashed.is_empty();
    r.auth_user_add.as_ref().is_some_and(|r| is_plain(&r.password, &r.hashed_password))
        || r.auth_user_change_password.as_ref().is_some_and(|r| is_plain(&r.password, &r.hashed_password))
}

/// The bytes to store for a password, or for the hash that came with the request.
pub(crate) fn select(password: &str, hashed: &str, salt: Salt) -> Result<Bytes, Error> {
    if !password.is_empty() && hashed.is_empty() {
        return hash(password, COST_DEFAULT, salt).ok_or(Error::NoPasswordUser);
    }
    // Go passes over line ends.
    let text: String = hashed.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    BASE64.decode(text).map(Bytes::from).map_err(|_| Error::NoPasswordUser)
}

/// The hash of a password in the form in which entries carry it. `None` if the password is too long.
pub fn hash_to_propose(password: &str, cost: u32, salt: Salt) -> Option<String> {
    Some(BASE64.encode(hash(password, cost, salt)?))
}

/// Whether a stored hash is that of the password. Takes long, on purpose.
pub fn matches(password: &str, hash: &[u8]) -> bool {
    // Longer ones than can be set today match by their first 72 bytes, as in Go: older releases stored such.
    bcrypt::verify(password, std::str::from_utf8(hash).unwrap_or_default()).unwrap_or(false)
}

fn hash(password: &str, cost: u32, salt: Salt) -> Option<Bytes> {
    if password.len() > PASSWORD_BYTES_MAX {
        return None;
    }
    let parts = bcrypt::hash_with_salt(password, cost, salt).ok()?;
    // The version that Go writes.
    Some(parts.format_for_version(bcrypt::Version::TwoA).into())
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("", "" => Ok(""); "neither")]
    #[test_case("", "YWJj" => Ok("abc"); "a hash")]
    #[test_case("plain", "YWJj" => Ok("abc"); "both")]
    #[test_case("", "YW\nJj\r\n" => Ok("abc"); "line ends")]
    #[test_case("", "YWI=" => Ok("ab"); "padded")]
    #[test_case("", "YWJ=" => Ok("ab"); "unused bits")]
    #[test_case("", "YWI" => Err(Error::NoPasswordUser); "not padded")]
    #[test_case("", "YW-_" => Err(Error::NoPasswordUser); "another alphabet")]
    fn selects(password: &str, hashed: &str) -> Result<&'static str, Error> {
        let found = select(password, hashed, [0; 16])?;
        Ok(["", "abc", "ab"].into_iter().find(|text| found == *text).unwrap())
    }

    #[test]
    fn hashes_what_only_older_releases_log() {
        let found = select("secret", "", [7; 16]).unwrap();
        let text = std::str::from_utf8(&found).unwrap();
        assert!(text.starts_with("$2a$10$"), "{text}");
        assert_eq!(bcrypt::verify("secret", text).ok(), Some(true));
        assert_eq!(bcrypt::verify("Secret", text).ok(), Some(false));
        assert!(select(&"x".repeat(72), "", [7; 16]).is_ok());
        assert_eq!(select(&"x".repeat(73), "", [7; 16]), Err(Error::NoPasswordUser));
    }

    #[test_case("secret" => true; "the password")]
    #[test_case("Secret" => false; "another")]
    #[test_case("" => false; "none")]
    fn a_proposed_hash_matches(password: &str) -> bool {
        let proposed = hash_to_propose("secret", 4, [7; 16]).unwrap();
        let stored = select("", &proposed, [0; 16]).unwrap();
        assert!(stored.starts_with(b"$2a$04$"), "{stored:?}");
        matches(password, &stored)
    }

    #[test]
    fn what_is_no_hash_matches_nothing() {
        for stored in [&b""[..], b"secret", b"\xff", b"$2a$04$"] {
            assert!(!matches("secret", stored));
            assert!(!matches("", stored), "a user without password does not log in with an empty one");
        }
        assert_eq!(hash_to_propose(&"x".repeat(73), 4, [7; 16]), None);
        assert!(matches(&"x".repeat(73), &select(&"x".repeat(72), "", [7; 16]).unwrap()));
    }
}
