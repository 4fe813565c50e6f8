//! Reading of protobuf's wire form without knowing the message: keys, varints, lengths.

/// The value of a field. No field of etcd's messages has a fixed width or is a group, so those values are only skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed64,
    Bytes(&'a [u8]),
    Fixed32,
    Group,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("the bytes end inside a value")]
    Truncated,
    #[error("a varint is longer than 64 bits")]
    LongVarint,
    #[error("field number {0} is outside 1 to 536870911")]
    FieldNumber(u64),
    #[error("wire type {0} is unknown, or the end of a group that has not begun")]
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
            Value::Group => 3,
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
    let (number, wire_type) = key(bytes)?;
    let value = match wire_type {
        3 => skip_group(bytes, number).map(|()| Value::Group)?,
        other => value(bytes, other)?,
    };
    Ok(Some((number, value)))
}

#[inline]
fn key(bytes: &mut &[u8]) -> Result<(u32, u8), WireError> {
    let key = varint(bytes)?;
    let number = key >> 3;
    if number == 0 || number > 536_870_911 {
        return Err(WireError::FieldNumber(number));
    }
    Ok((number as u32, (key & 7) as u8))
}

/// A value of any wire type but a group.
#[inline]
fn value<'a>(bytes: &mut &'a [u8], wire_type: u8) -> Result<Value<'a>, WireError> {
    Ok(match wire_type {
        0 => Value::Varint(varint(bytes)?),
        1 => take(bytes, 8).map(|_| Value::Fixed64)?,
        2 => {
            let length = varint(bytes)?;
            Value::Bytes(take(bytes, length)?)
        }
        5 => take(bytes, 4).map(|_| Value::Fixed32)?,
        other => return Err(WireError::WireType(other)),
    })
}

/// Skips the rest of the group `number`. Decoders ignore unknown groups as they ignore other unknown fields.
#[cold]
fn skip_group(bytes: &mut &[u8], number: u32) -> Result<(), WireError> {
    let mut open = vec![number];
    while let Some(innermost) = open.last().copied() {
        match key(bytes)? {
            (_, 3) if open.len() >= DEPTH_MAX as usize => return Err(WireError::TooDeep(DEPTH_MAX)),
            (number, 3) => open.push(number),
            (number, 4) if number == innermost => {
                open.pop();
            }
            (_, other) => {
                value(bytes, other)?;
            }
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn first(bytes: &[u8]) -> Result<(u32, u8, usize), WireError> {
        let mut rest = bytes;
        let (number, value) = next_field(&mut rest)?.expect("a field");
        Ok((number, value.wire_type(), rest.len()))
    }

    /// Keys: 0x0b and 0x0c begin and end group 1, 0x13 and 0x14 group 2, 0x18 is a varint of field 3.
    #[test]
    fn groups_are_skipped() {
        assert_eq!(first(&[0x0b, 0x0c, 0x18, 1]), Ok((1, 3, 2)));
        assert_eq!(first(&[0x0b, 0x18, 7, 0x13, 0x18, 7, 0x14, 0x0c]), Ok((1, 3, 0)));
        assert_eq!(first(&[0x0b, 0x18, 7]), Err(WireError::Truncated));
        assert_eq!(first(&[0x0b, 0x14]), Err(WireError::WireType(4)));
        assert_eq!(first(&[0x0c]), Err(WireError::WireType(4)));
        let deep = |levels: usize| [vec![0x0b; levels], vec![0x0c; levels]].concat();
        assert_eq!(first(&deep(100)), Ok((1, 3, 0)));
        assert_eq!(first(&deep(101)), Err(WireError::TooDeep(100)));
    }
}
