//! How often a client may ping (`--grpc-keepalive-min-time`). The rules are grpc-go's server's, and so etcd's.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use super::frame::{ACK, DATA, END_STREAM, Frame, HEADERS, PING, RST_STREAM};

/// With a minimum of 0, gRPC's own rule is in force.
const MIN_TIME_DEFAULT: Duration = Duration::from_secs(5 * 60);
/// Between pings of a client that has no call open.
const IDLE_MIN_TIME: Duration = Duration::from_secs(2 * 60 * 60);
const STRIKES_MAX: u8 = 2;

/// What a connection's client has done so far.
pub(super) struct PingPolicy {
    min_time: Duration,
    last_ping: Option<Instant>,
    strikes: u8,
    /// Something was sent since the last ping: clients measure the line with pings when data comes.
    has_sent: bool,
    open: HashSet<u32>,
    newest: u32,
}

impl PingPolicy {
    pub(super) fn new(min_time: Duration) -> PingPolicy {
        let min_time = if min_time.is_zero() { MIN_TIME_DEFAULT } else { min_time };
        PingPolicy { min_time, last_ping: None, strikes: 0, has_sent: false, open: HashSet::new(), newest: 0 }
    }

    /// The highest stream that the client has opened.
    pub(super) fn newest(&self) -> u32 {
        self.newest
    }

    /// A frame from the client; true if that is one ping too many.
    pub(super) fn handle_received(&mut self, frame: Frame, now: impl FnOnce() -> Instant) -> bool {
        match frame.kind {
            HEADERS if frame.stream > self.newest => {
                self.newest = frame.stream;
                self.open.insert(frame.stream);
            }
            RST_STREAM => _ = self.open.remove(&frame.stream),
            PING if frame.flags & ACK == 0 => return self.handle_ping(now()),
            _ => {}
        }
        false
    }

    pub(super) fn handle_sent(&mut self, frame: Frame) {
        match frame.kind {
            DATA | HEADERS => {
                self.has_sent = true;
                if frame.flags & END_STREAM != 0 {
                    self.open.remove(&frame.stream);
                }
            }
            RST_STREAM => _ = self.open.remove(&frame.stream),
            _ => {}
        }
    }

    fn handle_ping(&mut self, now: Instant) -> bool {
        let last = self.last_ping.replace(now);
        if std::mem::take(&mut self.has_sent) {
            self.strikes = 0;
            return false;
        }
        let min_time = if self.open.is_empty() { IDLE_MIN_TIME } else { self.min_time };
        if last.is_some_and(|last| now.duration_since(last) < min_time) {
            self.strikes += 1;
        }
        self.strikes > STRIKES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Frame = Frame { kind: HEADERS, flags: 4, stream: 1 };
    const SENT: Frame = Frame { kind: DATA, flags: 0, stream: 1 };
    const END: Frame = Frame { kind: HEADERS, flags: END_STREAM, stream: 1 };

    /// Pings at these seconds; which of them was too many.
    fn first_refused(policy: &mut PingPolicy, seconds: &[u64]) -> Option<usize> {
        let start = Instant::now();
        let ping = Frame { kind: PING, flags: 0, stream: 0 };
        seconds.iter().position(|at| policy.handle_received(ping, || start + Duration::from_secs(*at)))
    }

    fn policy() -> PingPolicy {
        PingPolicy::new(Duration::from_secs(5))
    }

    #[test]
    fn pings_during_a_call() {
        let mut calm = policy();
        calm.handle_received(CALL, Instant::now);
        assert_eq!(first_refused(&mut calm, &[0, 5, 10, 15, 20, 25]), None);
        let mut hasty = policy();
        hasty.handle_received(CALL, Instant::now);
        assert_eq!(first_refused(&mut hasty, &[0, 4, 8, 12]), Some(3));
    }

    #[test]
    fn pings_without_a_call() {
        assert_eq!(first_refused(&mut policy(), &[0, 60, 120, 180]), Some(3));
        let mut ended = policy();
        ended.handle_received(CALL, Instant::now);
        ended.handle_sent(END);
        // The first is free, since the end of the call was sent.
        assert_eq!(first_refused(&mut ended, &[0, 60, 120, 180, 240]), Some(3));
    }

    #[test]
    fn what_is_sent_forgives() {
        let mut policy = policy();
        policy.handle_received(CALL, Instant::now);
        for _ in 0..10 {
            assert_eq!(first_refused(&mut policy, &[0, 0, 0]), None);
            policy.handle_sent(SENT);
        }
    }
}
