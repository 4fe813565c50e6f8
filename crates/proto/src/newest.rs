//! The other bound beside `min_version`: what a message could need at most, whatever it holds.

use std::collections::HashSet;

use crate::{
    Version,
    schema::{Kind, Schema, schema},
};

/// The newest annotation among everything that the message of this full name can hold. A release at or above it
/// understands every such message that holds only elements known to this binary. `None`: there is no such message.
pub fn newest_version_named(full_name: &str) -> Option<Version> {
    let schema = schema();
    let message = schema.message(full_name)?;
    let mut seen = HashSet::new();
    Some(newest(schema, message, &mut seen))
}

/// Name, number and version of each field of a message, by number. `None`: there is no such message.
pub fn fields_named(full_name: &str) -> Option<impl Iterator<Item = (&'static str, u32, Version)>> {
    let schema = schema();
    let message = &schema.messages[schema.message(full_name)?];
    Some(message.fields.iter().map(|field| (field.name.as_str(), field.number, field.version)))
}

fn newest(schema: &Schema, message: usize, seen: &mut HashSet<usize>) -> Version {
    let declared = &schema.messages[message];
    let mut found = declared.version;
    if !seen.insert(message) {
        return found;
    }
    for field in &declared.fields {
        found = found.max(field.version);
        match field.kind {
            Kind::Message(inner) => found = found.max(newest(schema, inner, seen)),
            Kind::Enum(index) => {
                let values = &schema.enums[index];
                found = values.values.iter().fold(found.max(values.version), |found, value| found.max(value.2));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("etcdserverpb.CompactionRequest" => Some(Version::new(3, 0)); "nothing was ever added")]
    #[test_case("etcdserverpb.PutRequest" => Some(Version::new(3, 2)); "a field was added")]
    #[test_case("etcdserverpb.TxnRequest" => Some(Version::new(3, 3)); "it holds itself")]
    #[test_case("etcdserverpb.Nothing" => None; "unknown")]
    fn bound(name: &str) -> Option<Version> {
        newest_version_named(name)
    }
}
