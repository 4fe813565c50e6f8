//! The endpoints of a client: round robin over those that work.

use std::{
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tonic::transport::Channel;

use crate::{ConnectOptions, Error, Result, endpoint};

const DOWN_MIN: Duration = Duration::from_millis(100);
const DOWN_MAX: Duration = Duration::from_secs(5);

pub(crate) struct Pool {
    members: RwLock<Arc<[Arc<Member>]>>,
    next: AtomicUsize,
}

pub(crate) struct Member {
    pub endpoint: String,
    pub channel: Channel,
    /// A connection that has shown that its server heeds required features; made when first needed.
    pub proven: tokio::sync::Mutex<Option<Channel>>,
    down: Mutex<Option<Down>>,
}

/// After a failure a member rests, longer each time, so that calls go to the others.
#[derive(Clone, Copy)]
struct Down {
    until: Instant,
    rest: Duration,
}

impl Pool {
    pub(crate) fn new(endpoints: &[String], options: &ConnectOptions) -> Result<Pool> {
        let members = RwLock::new(members(endpoints, &[], options)?);
        Ok(Pool { members, next: AtomicUsize::new(0) })
    }

    /// The next member in turn that is not resting; if all are, the one whose rest ends first.
    pub(crate) fn pick(&self) -> Arc<Member> {
        let members = self.members();
        let first = self.next.fetch_add(1, Relaxed);
        let now = Instant::now();
        let turn = |i: usize| &members[(first + i) % members.len()];
        let up = (0..members.len()).map(turn).find(|member| member.rests_until().is_none_or(|until| until <= now));
        let member = up.or_else(|| (0..members.len()).map(turn).min_by_key(|member| member.rests_until()));
        Arc::clone(member.unwrap_or_else(|| turn(0)))
    }

    pub(crate) fn len(&self) -> usize {
        self.members().len()
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.members().iter().map(|member| member.endpoint.clone()).collect()
    }

    /// Connections to endpoints that stay are kept.
    pub(crate) fn set_endpoints(&self, endpoints: &[String], options: &ConnectOptions) -> Result<()> {
        let next = members(endpoints, &self.members(), options)?;
        *self.members.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = next;
        Ok(())
    }

    fn members(&self) -> Arc<[Arc<Member>]> {
        Arc::clone(&self.members.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

/// Never empty: an empty list is an error.
fn members(endpoints: &[String], known: &[Arc<Member>], options: &ConnectOptions) -> Result<Arc<[Arc<Member>]>> {
    if endpoints.is_empty() {
        return Err(Error::NoEndpoints);
    }
    let member = |endpoint: &String| match known.iter().find(|member| member.endpoint == *endpoint) {
        Some(member) => Ok(Arc::clone(member)),
        None => {
            let channel = endpoint::channel(endpoint, options)?;
            let (endpoint, proven) = (endpoint.clone(), tokio::sync::Mutex::default());
            Ok(Arc::new(Member { endpoint, channel, proven, down: Mutex::new(None) }))
        }
    };
    endpoints.iter().map(member).collect()
}

impl Member {
    pub(crate) fn succeeded(&self) {
        *self.down() = None;
    }

    pub(crate) fn failed(&self) {
        let mut down = self.down();
        let rest = down.map_or(DOWN_MIN, |down| (down.rest * 2).min(DOWN_MAX));
        *down = Some(Down { until: Instant::now() + rest, rest });
    }

    fn rests_until(&self) -> Option<Instant> {
        self.down().map(|down| down.until)
    }

    fn down(&self) -> std::sync::MutexGuard<'_, Option<Down>> {
        self.down.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(endpoints: &[&str]) -> Pool {
        let endpoints: Vec<String> = endpoints.iter().map(|s| s.to_string()).collect();
        Pool::new(&endpoints, &ConnectOptions::new()).unwrap()
    }

    #[tokio::test]
    async fn takes_turns_and_skips_members_that_rest() {
        let pool = pool(&["a:1", "b:1", "c:1"]);
        let turns: Vec<String> = (0..4).map(|_| pool.pick().endpoint.clone()).collect();
        assert_eq!(turns, ["a:1", "b:1", "c:1", "a:1"]);
        let b = pool.pick();
        b.failed();
        assert!((0..6).all(|_| pool.pick().endpoint != "b:1"));
        b.succeeded();
        assert!((0..3).any(|_| pool.pick().endpoint == "b:1"));
    }

    #[tokio::test]
    async fn with_all_resting_the_first_to_wake_is_taken() {
        let pool = pool(&["a:1", "b:1"]);
        let (a, b) = (pool.pick(), pool.pick());
        b.failed();
        (0..3).for_each(|_| a.failed());
        assert_eq!(pool.pick().endpoint, "b:1");
        assert_eq!(pool.pick().endpoint, "b:1");
    }

    #[tokio::test]
    async fn endpoints_can_be_replaced_but_not_emptied() {
        let pool = pool(&["a:1", "b:1"]);
        pool.set_endpoints(&["b:1".into(), "c:1".into()], &ConnectOptions::new()).unwrap();
        assert_eq!(pool.endpoints(), ["b:1", "c:1"]);
        assert!(matches!(pool.set_endpoints(&[], &ConnectOptions::new()), Err(Error::NoEndpoints)));
        assert_eq!(pool.len(), 2);
    }
}
