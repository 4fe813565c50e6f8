//! The loop: wait for the lease, look, decide, write, and look again when something changed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use kubeapi::{Cause, ConnectError, Kube};
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    Options,
    leader::{Held, Leader},
    look::{Kept, Look, LookError, Places, write},
};

/// After an event, others of the same change are waited for so long.
const SETTLE: Duration = Duration::from_millis(50);
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// So many steps that wrote may follow each other at once; to come to rest takes fewer.
const BUSY_MAX: u32 = 8;

/// Runs until `stop` is done; then gives the lease back.
pub async fn run(options: Options, stop: impl Future<Output = ()>) -> Result<(), ConnectError> {
    let kube = Kube::connect(options.kubeconfig.as_deref()).await?.named(featureset::manager::CONTROLLER);
    let places = Places::new(&options.namespace);
    let (mut leader, held) = Leader::new(kube.clone(), places.leases.clone(), &options);
    let changed = Arc::new(Notify::new());
    let kept = Kept::default();
    let mut watches = watches(&kube, &places, &changed, kept.field_gates.moved());
    tokio::select! {
        () = stop => {}
        () = leader.run() => {}
        () = work(&kube, &places, &options, held, &changed, kept) => {}
        () = stay_registered(&kube, &places, &options) => {}
    }
    watches.shutdown().await;
    leader.release().await;
    Ok(())
}

/// Never returns. Steps that fail are tried again, later and later.
async fn work(kube: &Kube, places: &Places, options: &Options, mut held: Held, changed: &Notify, mut kept: Kept) {
    let (mut wait, mut busy) = (BACKOFF.0, 0);
    register(kube, places, options).await;
    options.metrics.ready();
    loop {
        if held.wait_for(|until| until.is_some()).await.is_err() {
            return;
        }
        let begin = Instant::now();
        let ended = step(kube, places, options, &held, &mut kept).await;
        tell(options, &ended, begin.elapsed());
        match ended {
            // What was written is looked at again: only a step that writes nothing is the end.
            Ok(0) => {
                (wait, busy) = (BACKOFF.0, 0);
                let _ = tokio::time::timeout(options.timing.resync, changed.notified()).await;
                tokio::time::sleep(SETTLE).await;
            }
            Ok(_) => {
                (wait, busy) = (BACKOFF.0, busy + 1);
                tokio::time::sleep(pause(busy)).await;
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "a step failed; it is tried again");
                rest(wait, changed).await;
                wait = (wait * 2).min(BACKOFF.1);
            }
        }
    }
}

/// What failed may go well as soon as something has changed, such as a definition that is there again.
async fn rest(wait: Duration, changed: &Notify) {
    tokio::time::sleep(BACKOFF.0).await;
    let _ = tokio::time::timeout(wait.saturating_sub(BACKOFF.0), changed.notified()).await;
}

/// Who never comes to rest, because somebody always writes it back or the API does not keep it, must not keep the API busy.
fn pause(busy: u32) -> Duration {
    match busy.checked_sub(BUSY_MAX) {
        None => Duration::ZERO,
        Some(beyond) => (BACKOFF.0 * 2u32.pow(beyond.min(10))).min(BACKOFF.1),
    }
}

fn tell(options: &Options, ended: &Result<usize, LookError>, took: Duration) {
    use crate::metrics::Ended;
    let metrics = &options.metrics;
    match ended {
        Ok(0) => metrics.step(Ended::Nothing, took),
        Ok(_) => metrics.step(Ended::Wrote, took),
        Err(_) => metrics.step(Ended::Failed, took),
    }
    match ended {
        Ok(_) => metrics.ready(),
        Err(error) => metrics.not_ready(&chain(error)),
    }
}

/// The own registry does not wait for the lease: the holder, of whatever version, needs it to make our row.
async fn register(kube: &Kube, places: &Places, options: &Options) {
    let mut wait = BACKOFF.0;
    let object = featureset::config_map::to_config_map(&options.registry, &options.namespace);
    loop {
        match kube.create(&places.config_maps, &object).await {
            Ok(_) => return tracing::info!(version = options.registry.version, "wrote the registry of this version"),
            Err(error) if error.cause() == Cause::Conflict => return,
            Err(error) => {
                options.metrics.not_ready(&error.to_string());
                tracing::warn!(%error, "cannot write the registry of this version; it is tried again");
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(BACKOFF.1);
    }
}

/// Never returns. A controller that waits for years to be needed must find its registry there when it is.
async fn stay_registered(kube: &Kube, places: &Places, options: &Options) {
    let name = featureset::config_map::registry_name(&options.registry.version);
    loop {
        tokio::time::sleep(options.timing.resync).await;
        if let Ok(None) = kube.get(&places.config_maps, &name).await {
            register(kube, places, options).await;
        }
    }
}

/// How much was written, or is to be looked at again.
async fn step(
    kube: &Kube,
    places: &Places,
    options: &Options,
    held: &Held,
    kept: &mut Kept,
) -> Result<usize, LookError> {
    let writes = Look::take(kube, places, options, kept).await?.decide(options, kept);
    let mut written = 0;
    for one in &writes {
        // Whoever lost the lease meanwhile stops between two writes; the next holder looks afresh.
        if held.borrow().is_none_or(|until| until <= Instant::now()) {
            return Ok(writes.len());
        }
        let result = write(kube, places, &mut kept.field_gates, one).await;
        kept.refusals.forget_after(one);
        match result {
            Ok(what) => {
                tracing::info!(version = options.registry.version, "wrote {what}");
                written += 1;
            }
            // Somebody else was faster; what is there now is looked at.
            Err(error) if error.cause() == Cause::Conflict => {
                tracing::debug!(%error, "the object has moved on");
                return Ok(writes.len());
            }
            // What stands in the way of it is put right in the next step.
            Err(error) if kept.refusals.learn(one, &error) => return Ok(writes.len()),
            // It waits for the next look.
            Err(error) if !one.is_vital() => tracing::warn!(%error, "a chore was not done"),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(written)
}

/// Each watch says when to look.
fn watches(kube: &Kube, places: &Places, changed: &Arc<Notify>, moved: Arc<AtomicBool>) -> JoinSet<()> {
    let mut watches = JoinSet::new();
    // Records by their metadata, with label or without: some are large, and one that stands in the way may have none.
    let records = places.config_maps.clone().metadata_only();
    for place in [&places.feature_gates, &places.cluster_versions, &places.cluster_operators, &records] {
        watches.spawn(kube.clone().notify_events(place.clone(), None, changed.clone()));
    }
    let (definitions, changed) = (places.definitions.clone().metadata_only(), changed.clone());
    watches.spawn(kube.clone().on_events(definitions, None, move || {
        moved.store(true, Ordering::Release);
        changed.notify_one();
    }));
    watches
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // The API's errors repeat their cause.
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(&format!(": {cause_text}"));
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: after a definition had been missing for some time, rows came up to ten seconds late.
    #[tokio::test(start_paused = true)]
    async fn a_change_ends_the_rest_after_a_failure() {
        let (begin, changed) = (tokio::time::Instant::now(), Notify::new());
        changed.notify_one();
        rest(BACKOFF.1, &changed).await;
        assert!((BACKOFF.0..BACKOFF.1 / 2).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    }

    #[test]
    fn a_controller_that_writes_at_every_step_slows_down() {
        assert_eq!([1, BUSY_MAX - 1].map(pause), [Duration::ZERO; 2]);
        assert_eq!((pause(BUSY_MAX), pause(BUSY_MAX + 1)), (BACKOFF.0, BACKOFF.0 * 2));
        assert_eq!(pause(u32::MAX), BACKOFF.1);
    }
}
