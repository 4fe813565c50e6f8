//! One spelling of a JSON value, and the digest of it.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The same value with the keys of all objects in order, whatever order this build's maps keep.
pub fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            Value::Object(keys.into_iter().map(|key| (key.clone(), sorted(&fields[key]))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

pub fn digest_of(value: &Value) -> String {
    digest_of_bytes(sorted(value).to_string().as_bytes())
}

pub fn digest_of_bytes(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}
