//! The lowest release that understands a message: the newest annotation among everything the message uses.
//!
//! etcd computes the same for its log (`server/storage/wal/version.go`), with two gaps that are closed here: it does
//! not enter repeated fields, and it does not notice fields or enum values it does not know. Whatever is unknown is
//! reported as newer than this binary.

use prost::{Message as _, Name};

use crate::{
    Version, WireError, etcdserverpb, raftpb,
    schema::{Field, Kind, Schema, schema},
    wire::{self, DEPTH_MAX, Value},
};

/// What a message asks of its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MinVersion {
    /// This release and every later one understand the message.
    Known(Version),
    /// The message holds something newer than this binary: where it stands, such as
    /// `etcdserverpb.InternalRaftRequest.put.77` (a field number) or `….compare.result=9` (an enum value).
    Newer { path: String },
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MinVersionError {
    #[error("no message is named {0:?}; the right form is package.Message")]
    UnknownMessage(String),
    #[error("failed to read {path}")]
    Malformed { path: String, source: WireError },
    #[error("failed to read the version in {path}")]
    TestVersion { path: &'static str, source: crate::ParseVersionError },
}

/// The lowest release that understands the encoded message `M`.
pub fn min_version<M: Name>(bytes: &[u8]) -> Result<MinVersion, MinVersionError> {
    min_version_named(&M::full_name(), bytes)
}

/// [`min_version`] of a message given by its full name, such as `etcdserverpb.PutRequest`.
pub fn min_version_named(full_name: &str, bytes: &[u8]) -> Result<MinVersion, MinVersionError> {
    let schema = schema();
    let message = schema.message(full_name).ok_or_else(|| MinVersionError::UnknownMessage(full_name.to_owned()))?;
    walk_message(schema, message, bytes)
}

/// The lowest release that understands a log entry with all it carries.
///
/// As in etcd, a conf change counts as 3.0 and its second form as 3.4, whatever they hold; a normal entry is an
/// `InternalRaftRequest`, in which `downgrade_version_test` also stands for the version it names.
pub fn min_version_of_entry(entry: &raftpb::Entry) -> Result<MinVersion, MinVersionError> {
    let data = entry.data.as_deref().unwrap_or_default();
    match raftpb::EntryType::try_from(entry.r#type.unwrap_or_default()) {
        Ok(raftpb::EntryType::EntryNormal) => min_version_of_request(data),
        Ok(raftpb::EntryType::EntryConfChange) => {
            min_version::<raftpb::ConfChange>(data).map(|found| found.if_known(Version::new(3, 0)))
        }
        Ok(raftpb::EntryType::EntryConfChangeV2) => {
            min_version::<raftpb::ConfChangeV2>(data).map(|found| found.if_known(Version::new(3, 4)))
        }
        Err(_) => Ok(MinVersion::Newer { path: format!("raftpb.Entry.Type={}", entry.r#type.unwrap_or_default()) }),
    }
}

/// The lowest release that understands an encoded `InternalRaftRequest`, as it stands in a normal log entry.
pub fn min_version_of_request(bytes: &[u8]) -> Result<MinVersion, MinVersionError> {
    const PATH: &str = "etcdserverpb.InternalRaftRequest.downgrade_version_test.ver";
    let schema = schema();
    let known = request_indexes(schema);
    let mut walk = Walk::of(schema, known.request);
    let found = walk.whole(known.request, bytes)?;
    let MinVersion::Known(version) = found else { return Ok(found) };
    if !walk.has_test_request {
        return Ok(found);
    }
    let request = etcdserverpb::InternalRaftRequest::decode(bytes).ok();
    let Some(test) = request.and_then(|r| r.downgrade_version_test) else { return Ok(found) };
    let named: Version = test.ver.parse().map_err(|source| MinVersionError::TestVersion { path: PATH, source })?;
    Ok(MinVersion::Known(version.max(named)))
}

impl MinVersion {
    /// The newer of the two.
    pub fn max(self, other: MinVersion) -> MinVersion {
        match (self, other) {
            (MinVersion::Known(a), MinVersion::Known(b)) => MinVersion::Known(a.max(b)),
            (newer @ MinVersion::Newer { .. }, _) | (_, newer) => newer,
        }
    }

    fn if_known(self, version: Version) -> MinVersion {
        match self {
            MinVersion::Known(_) => MinVersion::Known(version),
            newer => newer,
        }
    }
}

struct Indexes {
    request: usize,
    test_request: usize,
}

fn request_indexes(schema: &Schema) -> &'static Indexes {
    static INDEXES: std::sync::OnceLock<Indexes> = std::sync::OnceLock::new();
    let index = |name| schema.message(name).expect("our own .proto files declare it");
    INDEXES.get_or_init(|| Indexes {
        request: index("etcdserverpb.InternalRaftRequest"),
        test_request: index("etcdserverpb.DowngradeVersionTestRequest"),
    })
}

fn walk_message(schema: &'static Schema, message: usize, bytes: &[u8]) -> Result<MinVersion, MinVersionError> {
    Walk::of(schema, message).whole(message, bytes)
}

/// The way from the outermost message to a field, kept on the stack so that nothing is allocated unless reported.
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    name: &'a str,
}

impl Path<'_> {
    fn text(&self) -> String {
        match self.parent {
            None => self.name.to_owned(),
            Some(parent) => format!("{}.{}", parent.text(), self.name),
        }
    }

    fn malformed(&self, source: WireError) -> MinVersionError {
        MinVersionError::Malformed { path: self.text(), source }
    }
}

struct Walk {
    schema: &'static Schema,
    newest: Version,
    /// The first unknown element. Reading goes on behind it, because malformed bytes are the graver finding.
    newer: Option<String>,
    test_request: usize,
    /// Seen on the way, so that only what holds one is decoded.
    has_test_request: bool,
}

impl Walk {
    fn of(schema: &'static Schema, message: usize) -> Walk {
        let (newest, test_request) = (schema.messages[message].version, request_indexes(schema).test_request);
        Walk { schema, newest, newer: None, test_request, has_test_request: false }
    }

    fn whole(&mut self, message: usize, bytes: &[u8]) -> Result<MinVersion, MinVersionError> {
        let root = Path { parent: None, name: &self.schema.messages[message].name };
        self.message(message, bytes, &root, 1)?;
        Ok(match self.newer.take() {
            None => MinVersion::Known(self.newest),
            Some(path) => MinVersion::Newer { path },
        })
    }

    fn message(&mut self, message: usize, mut bytes: &[u8], path: &Path, depth: u32) -> Result<(), MinVersionError> {
        if depth > DEPTH_MAX {
            return Err(path.malformed(WireError::TooDeep(DEPTH_MAX)));
        }
        self.has_test_request |= message == self.test_request;
        let message = &self.schema.messages[message];
        self.newest = self.newest.max(message.version);
        while let Some((number, value)) = wire::next_field(&mut bytes).map_err(|e| path.malformed(e))? {
            match message.field(number) {
                Some(field) => self.field(field, value, path, depth)?,
                None => _ = self.newer.get_or_insert_with(|| format!("{}.{number}", path.text())),
            }
        }
        Ok(())
    }

    #[inline]
    fn field(&mut self, field: &Field, value: Value, parent: &Path, depth: u32) -> Result<(), MinVersionError> {
        let path = Path { parent: Some(parent), name: &field.name };
        let used = match (field.kind, value) {
            (Kind::Message(message), Value::Bytes(bytes)) => {
                self.newest = self.newest.max(field.version);
                return self.message(message, bytes, &path, depth + 1);
            }
            (Kind::Enum(index), Value::Varint(number)) => {
                self.enumeration(field, index, number, &path);
                return Ok(());
            }
            (Kind::String, Value::Bytes(bytes)) => {
                std::str::from_utf8(bytes).map_err(|_| path.malformed(WireError::NotUtf8))?;
                !bytes.is_empty()
            }
            (Kind::Bytes, Value::Bytes(bytes)) => !bytes.is_empty(),
            (Kind::String | Kind::Bytes | Kind::Message(_), other) => return Err(path.malformed(other.mismatch(2))),
            (_, Value::Varint(number)) => number != 0,
            (_, Value::Bytes(bytes)) if field.repeated => return self.packed(field, bytes, &path),
            (_, other) => return Err(path.malformed(other.mismatch(0))),
        };
        if used || field.presence || field.repeated {
            self.newest = self.newest.max(field.version);
        }
        Ok(())
    }

    fn packed(&mut self, field: &Field, mut bytes: &[u8], path: &Path) -> Result<(), MinVersionError> {
        while !bytes.is_empty() {
            let number = wire::varint(&mut bytes).map_err(|e| path.malformed(e))?;
            match field.kind {
                Kind::Enum(index) => self.enumeration(field, index, number, path),
                _ => self.newest = self.newest.max(field.version),
            }
        }
        Ok(())
    }

    fn enumeration(&mut self, field: &Field, index: usize, number: u64, path: &Path) {
        let number = number as i32;
        if number == 0 && !field.presence && !field.repeated {
            return;
        }
        let declared = &self.schema.enums[index];
        match declared.value(number) {
            Some((_, _, version)) => {
                self.newest = self.newest.max(field.version).max(declared.version).max(*version);
            }
            None => _ = self.newer.get_or_insert_with(|| format!("{}={number}", path.text())),
        }
    }
}
