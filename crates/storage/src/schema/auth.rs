//! Buckets `auth`, `authUsers` and `authRoles`.

use std::ops::ControlFlow;

use prost::Message;
use proto::authpb::{Role, User};

use super::{Bucket, DecodeError, error::u64_of};
use crate::{Batch, Read};

pub const ENABLED: &[u8] = b"authEnabled";
pub const REVISION: &[u8] = b"authRevision";

/// Whether requests need a user. Anything but the byte 1 means no, as in etcd.
pub fn enabled(read: &impl Read) -> bool {
    read.get_with(Bucket::Auth, ENABLED, |v| v == [1]).unwrap_or(false)
}

pub fn put_enabled(batch: &mut Batch, enabled: bool) {
    batch.put(Bucket::Auth, ENABLED, if enabled { &b"\x01"[..] } else { &b"\x00"[..] });
}

/// Counts changes of users and roles; zero in a new file.
pub fn revision(read: &impl Read) -> Result<u64, DecodeError> {
    Ok(read.get_with(Bucket::Auth, REVISION, |v| u64_of(Bucket::Auth, REVISION, v)).transpose()?.unwrap_or(0))
}

pub fn put_revision(batch: &mut Batch, revision: u64) {
    batch.put(Bucket::Auth, REVISION, revision.to_be_bytes().to_vec());
}

pub fn user(read: &impl Read, name: &[u8]) -> Result<Option<User>, DecodeError> {
    get(read, Bucket::AuthUsers, name)
}

pub fn users(read: &impl Read) -> Result<Vec<User>, DecodeError> {
    all(read, Bucket::AuthUsers)
}

pub fn put_user(batch: &mut Batch, user: &User) {
    batch.put(Bucket::AuthUsers, user.name.clone(), user.encode_to_vec());
}

pub fn delete_user(batch: &mut Batch, name: &[u8]) {
    batch.delete(Bucket::AuthUsers, name);
}

pub fn role(read: &impl Read, name: &[u8]) -> Result<Option<Role>, DecodeError> {
    get(read, Bucket::AuthRoles, name)
}

pub fn roles(read: &impl Read) -> Result<Vec<Role>, DecodeError> {
    all(read, Bucket::AuthRoles)
}

pub fn put_role(batch: &mut Batch, role: &Role) {
    batch.put(Bucket::AuthRoles, role.name.clone(), role.encode_to_vec());
}

pub fn delete_role(batch: &mut Batch, name: &[u8]) {
    batch.delete(Bucket::AuthRoles, name);
}

pub(super) fn decode<M: Message + Default>(bucket: Bucket, key: &[u8], value: &[u8]) -> Result<M, DecodeError> {
    let expected = if bucket == Bucket::AuthUsers { "a user as authpb.User" } else { "a role as authpb.Role" };
    M::decode(value).map_err(|e| DecodeError::new(bucket, key, expected, e))
}

fn get<M: Message + Default>(read: &impl Read, bucket: Bucket, key: &[u8]) -> Result<Option<M>, DecodeError> {
    read.get_with(bucket, key, |v| decode(bucket, key, v)).transpose()
}

fn all<M: Message + Default>(read: &impl Read, bucket: Bucket) -> Result<Vec<M>, DecodeError> {
    let mut found = Vec::new();
    let mut error = None;
    read.scan(bucket, b"", b"", &mut |k, v| match decode(bucket, k, v) {
        Ok(message) => {
            found.push(message);
            ControlFlow::Continue(())
        }
        Err(e) => {
            error = Some(e);
            ControlFlow::Break(())
        }
    });
    error.map_or(Ok(found), Err)
}
