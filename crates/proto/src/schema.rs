//! The descriptors as flat tables, built once: what `min_version` and `json` walk.
//!
//! Invariants, held by the build of the tables (a violation is a mistake in our own .proto files and panics in
//! every test): each message, field, enum and enum value of our packages has a version; fields use only the
//! types of [`Kind`]; there are no maps, groups, extensions or default values.

use std::{collections::HashMap, sync::OnceLock};

use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind as ReflectKind,
    MessageDescriptor, Value,
};

use crate::Version;

/// The packages whose elements carry versions.
pub const PACKAGES: &[&str] = &[
    "authpb",
    "etcdserverpb",
    "leasepb",
    "membershippb",
    "mvccpb",
    "raftpb",
    "snappb",
    "v3electionpb",
    "v3lockpb",
    "walpb",
];

/// The pool of all descriptors, with custom options.
pub fn pool() -> &'static DescriptorPool {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(|| DescriptorPool::decode(crate::DESCRIPTORS).expect("the build script wrote a descriptor set"))
}

pub(crate) fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| Schema::build(pool()))
}

pub(crate) struct Schema {
    pub messages: Vec<Message>,
    pub enums: Vec<Enum>,
    by_name: HashMap<String, usize>,
}

pub(crate) struct Message {
    pub name: String,
    pub version: Version,
    /// Ordered by number.
    pub fields: Vec<Field>,
    /// Positions in `fields` of the numbers below 16, which take one byte on the wire; `NONE` if unused.
    low: [u8; 16],
}

pub(crate) struct Field {
    pub number: u32,
    pub name: String,
    pub json_name: String,
    pub version: Version,
    pub kind: Kind,
    pub repeated: bool,
    /// Written as one run of values instead of one field per value.
    pub packed: bool,
    /// A zero on the wire counts as set: oneof members and everything in proto2.
    pub presence: bool,
    /// Full name of the oneof this field is a member of.
    pub oneof: Option<String>,
    /// Position in the .proto file, which is the order in JSON.
    pub declared: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    String,
    Bytes,
    /// Position in [`Schema::enums`].
    Enum(usize),
    /// Position in [`Schema::messages`].
    Message(usize),
}

pub(crate) struct Enum {
    pub version: Version,
    /// Number, name and version, ordered by number.
    pub values: Vec<(i32, String, Version)>,
}

const NONE: u8 = u8::MAX;

impl Schema {
    /// The message of this full name, such as `etcdserverpb.PutRequest`.
    pub(crate) fn message(&self, full_name: &str) -> Option<usize> {
        self.by_name.get(full_name).copied()
    }

    fn build(pool: &DescriptorPool) -> Schema {
        let ours = |package: &str| PACKAGES.contains(&package);
        let messages: Vec<_> = pool.all_messages().filter(|m| ours(m.package_name())).collect();
        let enums: Vec<_> = pool.all_enums().filter(|e| ours(e.package_name())).collect();
        let by_name: HashMap<_, _> = messages.iter().enumerate().map(|(i, m)| (m.full_name().to_owned(), i)).collect();
        let enums_by_name = enums.iter().enumerate().map(|(i, e)| (e.full_name().to_owned(), i)).collect();
        Schema {
            messages: messages.iter().map(|m| Message::build(m, &by_name, &enums_by_name)).collect(),
            enums: enums.iter().map(Enum::build).collect(),
            by_name,
        }
    }
}

impl Message {
    #[inline]
    pub(crate) fn field(&self, number: u32) -> Option<&Field> {
        match self.low.get(number as usize) {
            Some(&NONE) => None,
            Some(&position) => self.fields.get(usize::from(position)),
            None => self.fields.binary_search_by_key(&number, |f| f.number).ok().map(|position| &self.fields[position]),
        }
    }

    /// The field of this JSON name or, failing that, of this .proto name.
    pub(crate) fn field_named(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.json_name == name).or_else(|| self.fields.iter().find(|f| f.name == name))
    }

    fn build(message: &MessageDescriptor, messages: &HashMap<String, usize>, enums: &HashMap<String, usize>) -> Self {
        let declared: HashMap<_, _> =
            message.descriptor_proto().field.iter().enumerate().map(|(i, f)| (f.number() as u32, i)).collect();
        let mut fields: Vec<_> =
            message.fields().map(|f| Field::build(&f, declared[&f.number()], messages, enums)).collect();
        fields.sort_by_key(|f| f.number);
        let mut low = [NONE; 16];
        for (position, field) in fields.iter().enumerate().filter(|(_, f)| f.number < 16) {
            low[field.number as usize] = position as u8;
        }
        let version = annotation(&message.options(), "versionpb.etcd_version_msg", message.full_name());
        Message { name: message.full_name().to_owned(), version, fields, low }
    }
}

impl Field {
    fn build(
        field: &FieldDescriptor,
        declared: usize,
        messages: &HashMap<String, usize>,
        enums: &HashMap<String, usize>,
    ) -> Self {
        let kind = match field.kind() {
            ReflectKind::Bool => Kind::Bool,
            ReflectKind::Int32 => Kind::Int32,
            ReflectKind::Int64 => Kind::Int64,
            ReflectKind::Uint32 => Kind::Uint32,
            ReflectKind::Uint64 => Kind::Uint64,
            ReflectKind::String => Kind::String,
            ReflectKind::Bytes => Kind::Bytes,
            ReflectKind::Enum(e) => Kind::Enum(enums[e.full_name()]),
            ReflectKind::Message(m) if !field.is_map() && !field.is_group() => Kind::Message(messages[m.full_name()]),
            other => panic!("{}: add {other:?} to schema::Kind before using it", field.full_name()),
        };
        Field {
            number: field.number(),
            name: field.name().to_owned(),
            json_name: field.json_name().to_owned(),
            version: annotation(&field.options(), "versionpb.etcd_version_field", field.full_name()),
            kind,
            repeated: field.cardinality() == Cardinality::Repeated,
            packed: field.is_packed(),
            presence: field.supports_presence(),
            oneof: field.containing_oneof().map(|o| o.full_name().to_owned()),
            declared,
        }
    }
}

impl Enum {
    pub(crate) fn value(&self, number: i32) -> Option<&(i32, String, Version)> {
        self.values.binary_search_by_key(&number, |v| v.0).ok().map(|position| &self.values[position])
    }

    fn build(descriptor: &EnumDescriptor) -> Self {
        let mut values: Vec<_> = descriptor
            .values()
            .map(|v| {
                let version = annotation(&v.options(), "versionpb.etcd_version_enum_value", v.full_name());
                (v.number(), v.name().to_owned(), version)
            })
            .collect();
        values.sort_by_key(|v| v.0);
        let version = annotation(&descriptor.options(), "versionpb.etcd_version_enum", descriptor.full_name());
        Enum { version, values }
    }
}

/// The version of an element, from its options.
fn annotation(options: &DynamicMessage, extension: &str, element: &str) -> Version {
    let text = annotation_text(options, extension).unwrap_or_else(|| panic!("{element} has no {extension}"));
    text.parse().unwrap_or_else(|error| panic!("{element}: {error}"))
}

/// The text of a version annotation, `None` if the element has none.
pub fn annotation_text(options: &DynamicMessage, extension: &str) -> Option<String> {
    let extension = pool().get_extension_by_name(extension)?;
    match options.has_extension(&extension).then(|| options.get_extension(&extension).into_owned()) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}
