//! Definitions whose field gates follow: a look at them, one apply, and what is remembered of those that went wrong.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use featureset::{
    definition::{self, MANAGER},
    sync::{Definitions, FieldWrite, Held},
};
use kubeapi::{ApiError, Cause, Kube, Place};
use serde_json::Value;

/// How long after a refusal the same is tried again: longer each time.
const AFTER_REFUSAL: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(3600));
/// How long after gates were taken from others they are not taken again: longer each time.
const AFTER_TAKING: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));
/// Definitions are listed when one of them has moved, and this long after the last time, should a watch be silently dead.
const LIST_AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct FieldGates {
    memory: BTreeMap<String, Memory>,
    /// As they were when they were listed last, and when that was.
    there: Vec<Value>,
    listed: Option<Instant>,
    moved: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct Memory {
    refused: Option<Refusal>,
    /// How often gates were taken from others, and when last.
    taken: Option<(u32, Instant)>,
}

#[derive(Debug)]
struct Refusal {
    config: Value,
    why: String,
    times: u32,
    at: Instant,
}

impl FieldGates {
    /// To be set by whoever sees that a definition has moved.
    pub(crate) fn moved(&self) -> Arc<AtomicBool> {
        self.moved.clone()
    }

    /// Definitions that concern the controller. What cannot be read must not hold up rows, so it is no error.
    pub(crate) async fn look(&mut self, kube: &Kube, place: &Place) -> Definitions {
        if !self.is_due(Instant::now()) {
            return Definitions { there: self.there.clone(), unreadable: None, held: self.held(Instant::now()) };
        }
        let (there, unreadable) = match read(kube, place).await {
            Ok(there) => (there, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        match unreadable {
            None => {
                self.memory.retain(|name, _| there.iter().any(|one| definition::name_of(one) == name));
                (self.there, self.listed) = (there.clone(), Some(Instant::now()));
            }
            Some(_) => self.listed = None,
        }
        Definitions { there, unreadable, held: self.held(Instant::now()) }
    }

    /// What moves while they are listed is listed again.
    fn is_due(&self, now: Instant) -> bool {
        let moved = self.moved.swap(false, Ordering::Acquire);
        moved || self.listed.is_none_or(|listed| now >= listed + LIST_AGAIN)
    }

    /// What was done, for the log. An error says that the object has moved on, or that nobody answered; what the API has against
    /// it is remembered, and told in the next step.
    pub(crate) async fn apply(
        &mut self,
        kube: &Kube,
        place: &Place,
        write: &FieldWrite,
    ) -> Result<&'static str, ApiError> {
        let force = !write.taken.is_empty();
        // The event of it may come later than the next look.
        self.moved.store(true, Ordering::Release);
        let why = match kube.apply(place, &write.config, MANAGER, force).await {
            Ok(object) if definition::is_settled(&object, &write.wanted) => {
                self.done(write, Instant::now());
                return Ok("gates of fields");
            }
            Ok(_) => "the API server took it and did not keep it".to_owned(),
            Err(error) if error.cause() == Cause::Conflict => return Err(error),
            Err(error) if error.is_answer() || matches!(error, ApiError::TooLate { .. }) => error.to_string(),
            Err(error) => return Err(error),
        };
        tracing::warn!(definition = write.name, why, "gates of fields were not applied");
        self.refused(write, why, Instant::now());
        Ok("no gates of fields")
    }

    fn done(&mut self, write: &FieldWrite, now: Instant) {
        let gates = write.wanted.iter().map(|(gate, on)| format!("{gate}={on}")).collect::<Vec<_>>().join(" ");
        tracing::info!(definition = write.name, gates, "applied gates of fields");
        // Never silently: whoever set it finds out here why it is not so any more.
        for (gate, managers) in &write.taken {
            let managers = managers.iter().cloned().collect::<Vec<_>>().join(", ");
            tracing::warn!(
                definition = write.name,
                gate,
                managers,
                "took enabled over, as the definition follows feature sets"
            );
        }
        let memory = self.memory.entry(write.name.clone()).or_default();
        memory.refused = None;
        if !write.taken.is_empty() {
            let times = memory.taken.filter(|taken| !is_forgotten(*taken, now)).map_or(0, |(times, _)| times);
            memory.taken = Some((times + 1, now));
        }
    }

    fn refused(&mut self, write: &FieldWrite, why: String, at: Instant) {
        let memory = self.memory.entry(write.name.clone()).or_default();
        let times = memory.refused.as_ref().map_or(0, |refusal| refusal.times) + 1;
        memory.refused = Some(Refusal { config: write.config.clone(), why, times, at });
    }

    fn held(&self, now: Instant) -> BTreeMap<String, Vec<Held>> {
        self.memory.iter().map(|(name, memory)| (name.clone(), memory.held(now))).collect()
    }
}

impl Memory {
    fn held(&self, now: Instant) -> Vec<Held> {
        let refused = self.refused.as_ref().map(|refusal| Held::Refused {
            config: refusal.config.clone(),
            why: refusal.why.clone(),
            again: now >= refusal.at + doubled(AFTER_REFUSAL, refusal.times),
        });
        let taken = self.taken.filter(|(times, at)| now < *at + doubled(AFTER_TAKING, *times));
        let contested = taken.map(|(times, _)| Held::Contested { times });
        refused.into_iter().chain(contested).collect()
    }
}

/// Nobody has minded for long.
fn is_forgotten((times, at): (u32, Instant), now: Instant) -> bool {
    now >= at + doubled(AFTER_TAKING, times) * 2
}

fn doubled((first, most): (Duration, Duration), times: u32) -> Duration {
    first.saturating_mul(1 << times.saturating_sub(1).min(20)).min(most)
}

/// Metadata of all, which tell whom it concerns; then those whole.
async fn read(kube: &Kube, place: &Place) -> Result<Vec<Value>, ApiError> {
    let mut there = Vec::new();
    for metadata in kube.list(&place.clone().metadata_only(), None).await? {
        if definition::concerns(&metadata) {
            there.extend(kube.get(place, definition::name_of(&metadata)).await?);
        }
    }
    Ok(there)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn write(taken: bool) -> FieldWrite {
        let managers = BTreeSet::from(["kubectl".to_owned()]);
        let taken = if taken { [("A".to_owned(), managers)].into() } else { BTreeMap::new() };
        FieldWrite { name: "x".to_owned(), config: json!({"v": 1}), wanted: [("A".to_owned(), true)].into(), taken }
    }

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn repeated_conflicts_slow_down_and_a_single_edit_is_reverted_at_once() {
        let (mut gates, start) = (FieldGates::default(), Instant::now());
        let held = |gates: &FieldGates, at| gates.held(start + S(at)).get("x").cloned().unwrap_or_default();
        gates.done(&write(false), start);
        assert_eq!(held(&gates, 0), [], "no value was taken over");
        gates.done(&write(true), start);
        assert_eq!(held(&gates, 59), [Held::Contested { times: 1 }]);
        assert_eq!(held(&gates, 60), []);
        gates.done(&write(true), start + S(60));
        assert_eq!((held(&gates, 179), held(&gates, 180)), (vec![Held::Contested { times: 2 }], vec![]));
        gates.done(&write(true), start + S(1000));
        assert_eq!(held(&gates, 1059), [Held::Contested { times: 1 }], "the conflict was over");
        let mut after = 1000;
        for times in 1..40 {
            after += doubled(AFTER_TAKING, times).as_secs();
            gates.done(&write(true), start + S(after));
        }
        assert_eq!(
            (held(&gates, after + 3599).len(), held(&gates, after + 3600).len()),
            (1, 0),
            "never longer than an hour"
        );
    }

    #[test]
    fn a_refusal_is_reported_and_retried_with_growing_pauses() {
        let (mut gates, start) = (FieldGates::default(), Instant::now());
        let again = |gates: &FieldGates, at| match &gates.held(start + S(at))["x"][..] {
            [Held::Refused { again, why, .. }] => (*again, why.clone()),
            other => panic!("{other:?}"),
        };
        gates.refused(&write(false), "no".to_owned(), start);
        assert_eq!((again(&gates, 4), again(&gates, 5)), ((false, "no".to_owned()), (true, "no".to_owned())));
        gates.refused(&write(false), "still no".to_owned(), start + S(5));
        assert_eq!((again(&gates, 14).0, again(&gates, 15)), (false, (true, "still no".to_owned())));
        gates.done(&write(false), start + S(15));
        assert_eq!(gates.held(start + S(15))["x"], []);
    }

    #[test]
    fn definitions_are_listed_after_a_change_and_periodically() {
        let (mut gates, start) = (FieldGates::default(), Instant::now());
        assert!(gates.is_due(start), "never listed");
        gates.listed = Some(start);
        assert!(!gates.is_due(start + S(59)) && gates.is_due(start + S(60)));
        gates.moved().store(true, Ordering::Release);
        assert!(gates.is_due(start) && !gates.is_due(start), "one list for one change");
    }
}
