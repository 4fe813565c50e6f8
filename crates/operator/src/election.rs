//! Who holds the lease: decided from what is seen of it and a clock of one's own, as clocks of others may be wrong.

use std::time::Duration;

use serde_json::{Value, json};

/// What to do about the lease now.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Create(Value),
    /// Take or renew it; a conflict means that somebody else was faster.
    Update(Value),
    Wait,
}

#[derive(Debug)]
pub struct Election {
    identity: String,
    duration: Duration,
    /// Holder and time of renewal as last seen, and when they were first seen.
    seen: Option<((String, String), Duration)>,
}

impl Election {
    pub fn new(identity: &str, duration: Duration) -> Election {
        Election { identity: identity.to_owned(), duration, seen: None }
    }

    /// `since_start` is a clock that only goes forward; `time` is what to write into the lease.
    pub fn decide(&mut self, lease: Option<&Value>, empty: &Value, since_start: Duration, time: &str) -> Step {
        let Some(lease) = lease else { return Step::Create(self.held(empty, time)) };
        let text = |key: &str| lease["spec"][key].as_str().unwrap_or_default().to_owned();
        let (holder, renewed) = (text("holderIdentity"), text("renewTime"));
        if holder.is_empty() || holder == self.identity {
            return Step::Update(self.held(lease, time));
        }
        let record = (holder, renewed);
        let first_seen = match &self.seen {
            Some((seen, at)) if *seen == record => *at,
            _ => {
                self.seen = Some((record, since_start));
                since_start
            }
        };
        let theirs = lease["spec"]["leaseDurationSeconds"].as_u64().map_or(self.duration, Duration::from_secs);
        if since_start.saturating_sub(first_seen) >= theirs { Step::Update(self.held(lease, time)) } else { Step::Wait }
    }

    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The lease as one that nobody holds, so that the next need not wait.
    pub fn released(&self, lease: &Value) -> Option<Value> {
        (lease["spec"]["holderIdentity"] == self.identity.as_str()).then(|| {
            let mut free = lease.clone();
            free["spec"]["holderIdentity"] = "".into();
            free["spec"]["leaseDurationSeconds"] = 1.into();
            free
        })
    }

    fn held(&self, lease: &Value, time: &str) -> Value {
        let mut held = lease.clone();
        let same = held["spec"]["holderIdentity"] == self.identity.as_str();
        let transitions = held["spec"]["leaseTransitions"].as_u64().unwrap_or(0);
        if !held["spec"].is_object() {
            held["spec"] = json!({});
        }
        if !same {
            held["spec"]["acquireTime"] = time.into();
            held["spec"]["leaseTransitions"] = (transitions + u64::from(lease.get("spec").is_some())).into();
        }
        held["spec"]["holderIdentity"] = self.identity.clone().into();
        held["spec"]["leaseDurationSeconds"] = self.duration.as_secs().max(1).into();
        held["spec"]["renewTime"] = time.into();
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Duration = Duration::from_secs;

    fn lease(holder: &str, renewed: &str) -> Value {
        json!({"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15, "leaseTransitions": 3}})
    }

    #[test]
    fn a_free_lease_is_taken_and_an_own_one_renewed() {
        let mut election = Election::new("me", S(15));
        let Step::Create(made) = election.decide(None, &json!({"kind": "Lease"}), S(0), "t0") else { panic!() };
        assert_eq!((&made["spec"]["holderIdentity"], &made["spec"]["leaseTransitions"]), (&"me".into(), &0.into()));
        let Step::Update(renewed) = election.decide(Some(&made), &json!({}), S(2), "t1") else { panic!() };
        assert_eq!((&renewed["spec"]["renewTime"], &renewed["spec"]["acquireTime"]), (&"t1".into(), &"t0".into()));
        let free = election.released(&renewed).unwrap();
        assert_eq!(Election::new("other", S(15)).released(&renewed), None);
        let step = Election::new("other", S(15)).decide(Some(&free), &json!({}), S(0), "t2");
        assert!(matches!(step, Step::Update(taken) if taken["spec"]["leaseTransitions"] == 1));
    }

    #[test]
    fn a_holder_that_renews_keeps_it_and_one_that_does_not_loses_it() {
        let mut election = Election::new("me", S(15));
        let mut decide = |lease: &Value, at| election.decide(Some(lease), &json!({}), S(at), "t");
        assert_eq!(decide(&lease("other", "a"), 0), Step::Wait);
        assert_eq!(decide(&lease("other", "a"), 14), Step::Wait);
        assert_eq!(decide(&lease("other", "b"), 15), Step::Wait);
        assert_eq!(decide(&lease("other", "b"), 29), Step::Wait);
        let Step::Update(taken) = decide(&lease("other", "b"), 30) else { panic!() };
        assert_eq!((&taken["spec"]["holderIdentity"], &taken["spec"]["leaseTransitions"]), (&"me".into(), &4.into()));
    }
}
