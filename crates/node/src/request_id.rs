//! Request ids that stay unique over restarts and members, made as etcd makes them.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// High to low: 2 bytes of the member id, 5 bytes of the start time in milliseconds, 1 byte of counter. The counter may
/// run over into the time: more than 256 ids a millisecond would have to be used for long before a restart could
/// meet them again.
pub(crate) struct RequestIds {
    prefix: u64,
    suffix: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new(member: u64, now: SystemTime) -> RequestIds {
        let ms = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let suffix = (ms & ((1 << 40) - 1)) << 8;
        RequestIds { prefix: member << 48, suffix: AtomicU64::new(suffix) }
    }

    pub(crate) fn next(&self) -> u64 {
        let suffix = self.suffix.fetch_add(1, Ordering::Relaxed) + 1;
        self.prefix | (suffix & ((1 << 48) - 1))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn layout() {
        let ids = RequestIds::new(0x12345, UNIX_EPOCH + Duration::from_millis(0xabcdef));
        assert_eq!(ids.next(), 0x2345_0000_abcd_ef01);
        assert_eq!(ids.next(), 0x2345_0000_abcd_ef02);
    }
}
