//! When a watch stream sends: at once as long as it has little to say, in lots that gathered for a moment in a flood.
//!
//! Sending costs a wake-up, a poll and a system call, whether it is one event or a hundred. So a stream that sent many
//! events in one go rests. An event that comes after the rest is sent at once; one that comes sooner shows that the
//! stream is flooded: it waits for the end of the rest, and so do those that come meanwhile.
//!
//! Invariants: no event waits longer than [`REST`] and a tick of the timer; a stream that sends fewer than [`EVENTS_MIN`]
//! events in one go never rests, so neither does one whose next event depends on the arrival of the last.

use std::time::Duration;

use tokio::time::Instant;

/// The least that timers can count. Four times as long saves hardly more, but is felt.
const REST: Duration = Duration::from_millis(1);

/// So many in one go are worth a rest.
const EVENTS_MIN: usize = 50;

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Events since there was nothing to send.
    sent: usize,
    rest_end: Option<Instant>,
    /// Something came before the end of the rest.
    flooded: bool,
}

impl Pace {
    pub(super) fn handle_sent(&mut self, events: usize) {
        self.sent = self.sent.saturating_add(events);
    }

    /// There may be something to send. Gives until when to let it wait.
    pub(super) fn handle_event(&mut self, now: Instant) -> Option<Instant> {
        self.rest_end = self.rest_end.filter(|end| now < *end);
        self.flooded |= self.rest_end.is_some();
        self.rest_end
    }

    /// There is nothing more to send. Gives until when to wait without being notified of events; `None`: be notified of
    /// the next one.
    pub(super) fn handle_dry(&mut self, now: Instant) -> Option<Instant> {
        let sent = std::mem::take(&mut self.sent);
        self.rest_end = (sent >= EVENTS_MIN).then(|| now + REST);
        self.flooded &= self.rest_end.is_some();
        self.rest_end.filter(|_| self.flooded)
    }

    /// What is there is sent now.
    pub(super) fn handle_hurry(&mut self) {
        self.rest_end = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = EVENTS_MIN;
    const FEW: usize = EVENTS_MIN - 1;

    /// Sends a lot; gives how long notifications are not wanted.
    fn send(pace: &mut Pace, now: Instant, events: usize) -> Option<Duration> {
        assert_eq!(pace.handle_event(now), None);
        pace.handle_sent(events);
        // Looking in between, at requests for instance, changes nothing.
        assert_eq!(pace.handle_event(now), None);
        pace.handle_dry(now).map(|end| end - now)
    }

    #[test]
    fn few_events_never_wait() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for i in 0..10_000 {
            assert_eq!(send(&mut pace, now + Duration::from_micros(i), FEW), None);
        }
    }

    #[test]
    fn many_events_now_and_then_never_wait() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for i in 0..1000 {
            assert_eq!(send(&mut pace, now + i * REST, usize::MAX), None);
        }
    }

    #[test]
    fn a_flood_gathers_and_its_end_is_noticed() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        assert_eq!(send(&mut pace, start, MANY), None);
        // The first that comes too soon waits for the end of the rest, not longer.
        assert_eq!(pace.handle_event(start + REST / 3), Some(start + REST));
        assert_eq!(pace.handle_event(start + REST / 2), Some(start + REST));
        // From now on nobody needs to say that there are events.
        assert_eq!(send(&mut pace, start + REST, MANY), Some(REST));
        assert_eq!(send(&mut pace, start + 2 * REST, MANY), Some(REST));
        // Less came: the stream wants to be notified again, and sends at once.
        assert_eq!(send(&mut pace, start + 3 * REST, FEW), None);
        assert_eq!(send(&mut pace, start + 3 * REST, MANY), None);
        assert_eq!(send(&mut pace, start + 4 * REST, MANY), None);
    }

    #[test]
    fn nothing_came_in_the_rest() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        assert_eq!(send(&mut pace, start, MANY), None);
        assert_eq!(pace.handle_event(start + REST / 2), Some(start + REST));
        assert_eq!(send(&mut pace, start + REST, 0), None);
        assert_eq!(send(&mut pace, start + REST, 1), None);
    }

    #[test]
    fn hurry_ends_the_rest() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        assert_eq!(send(&mut pace, start, MANY), None);
        assert_eq!(pace.handle_event(start + REST / 2), Some(start + REST));
        pace.handle_hurry();
        assert_eq!(send(&mut pace, start + REST / 2, 1), None);
    }
}
