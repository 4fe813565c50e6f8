//! The fields of a protobuf message, one after the other.

pub(super) enum Wire<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Fixed64(u64),
    Fixed32,
}

pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next field, or nothing at the end; the outer `None` is for bytes that are no message.
    pub(super) fn field(&mut self) -> Option<Option<(u64, Wire<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Wire::Fixed32)?,
            _ => return None,
        };
        Some(Some((key >> 3, wire)))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

/// `None` within for a time that was never set.
pub(super) fn time(bytes: &[u8], micros: bool) -> Option<Option<String>> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Varint(value)) => seconds = value as i64,
            (2, Wire::Varint(value)) => nanos = value as i32,
            _ => {}
        }
    }
    if seconds == 0 && nanos == 0 {
        return Some(None);
    }
    let time = jiff::Timestamp::new(seconds, nanos).ok()?;
    let format = if micros { "%Y-%m-%dT%H:%M:%S%.6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Some(Some(time.strftime(format).to_string()))
}
