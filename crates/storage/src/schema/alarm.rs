//! Bucket `alarm`: active alarms, each of them a key with an empty value.

use std::ops::ControlFlow;

use prost::Message;
use proto::etcdserverpb::AlarmMember;

use super::{Bucket, DecodeError};
use crate::{Batch, Read};

pub fn all(read: &impl Read) -> Result<Vec<AlarmMember>, DecodeError> {
    let mut alarms = Vec::new();
    let mut error = None;
    read.scan(Bucket::Alarm, b"", b"", &mut |k, _| match decode(k) {
        Ok(alarm) => {
            alarms.push(alarm);
            ControlFlow::Continue(())
        }
        Err(e) => {
            error = Some(e);
            ControlFlow::Break(())
        }
    });
    error.map_or(Ok(alarms), Err)
}

pub fn put(batch: &mut Batch, alarm: &AlarmMember) {
    batch.put(Bucket::Alarm, alarm.encode_to_vec(), &b""[..]);
}

pub fn delete(batch: &mut Batch, alarm: &AlarmMember) {
    batch.delete(Bucket::Alarm, &alarm.encode_to_vec());
}

pub(super) fn decode(key: &[u8]) -> Result<AlarmMember, DecodeError> {
    AlarmMember::decode(key).map_err(|e| DecodeError::new(Bucket::Alarm, key, "an alarm as AlarmMember", e))
}
