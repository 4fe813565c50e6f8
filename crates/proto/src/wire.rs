//! Reading of protobuf's wire form without knowing the message: keys, varints, lengths.

/// What stands behind a field key. No field of ours has a fixed width, so those values are only stepped over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed64,
    Bytes(&'a [u8]),
    Fixed32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("the bytes end inside a value")]
    Truncated,
    #[error("a varint is longer than 64 bits")]
    LongVarint,
    #[error("field number {0} is outside 1 to 536870911")]
    FieldNumber(u64),
    #[error("wire type {0} is a group or unknown, and no message of ours uses one")]
    WireType(u8),
    #[error("wire type {found} stands where the field's type is written as {expected}")]
    OtherWireType { found: u8, expected: u8 },
    #[error("a string is not UTF-8")]
    NotUtf8,
    #[error("messages nest deeper than {0} levels")]
    TooDeep(u32),
}

/// How deep messages may nest; prost refuses to decode more.
pub(crate) const DEPTH_MAX: u32 = 100;

impl Value<'_> {
    pub(crate) fn wire_type(&self) -> u8 {
        match self {
            Value::Varint(_) => 0,
            Value::Fixed64 => 1,
            Value::Bytes(_) => 2,
            Value::Fixed32 => 5,
        }
    }

    /// The error for a value that a field of wire type `expected` cannot hold.
    pub(crate) fn mismatch(&self, expected: u8) -> WireError {
        WireError::OtherWireType { found: self.wire_type(), expected }
    }
}

/// Takes the next field off `bytes`: its number and value, or `None` at the end.
#[inline]
pub(crate) fn next_field<'a>(bytes: &mut &'a [u8]) -> Result<Option<(u32, Value<'a>)>, WireError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let key = varint(bytes)?;
    let number = key >> 3;
    if number == 0 || number > 536_870_911 {
        return Err(WireError::FieldNumber(number));
    }
    let value = match (key & 7) as u8 {
        0 => Value::Varint(varint(bytes)?),
        1 => take(bytes, 8).map(|_| Value::Fixed64)?,
        2 => {
            let length = varint(bytes)?;
            Value::Bytes(take(bytes, length)?)
        }
        5 => take(bytes, 4).map(|_| Value::Fixed32)?,
        other => return Err(WireError::WireType(other)),
    };
    Ok(Some((number as u32, value)))
}

#[inline]
pub(crate) fn varint(bytes: &mut &[u8]) -> Result<u64, WireError> {
    if let [first, rest @ ..] = *bytes
        && *first < 0x80
    {
        *bytes = rest;
        return Ok(u64::from(*first));
    }
    long_varint(bytes)
}

fn long_varint(bytes: &mut &[u8]) -> Result<u64, WireError> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().enumerate().take(10) {
        if i == 9 && *byte > 1 {
            return Err(WireError::LongVarint);
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if *byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Ok(value);
        }
    }
    Err(if bytes.len() < 10 { WireError::Truncated } else { WireError::LongVarint })
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Result<&'a [u8], WireError> {
    let length = usize::try_from(length).map_err(|_| WireError::Truncated)?;
    let (head, tail) = bytes.split_at_checked(length).ok_or(WireError::Truncated)?;
    *bytes = tail;
    Ok(head)
}
