//! Holding the lease: renewed in the background, given back at the end.

use std::time::{Duration, Instant};

use kubeapi::{ApiError, Cause, Kube, Place};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    Options, Timing,
    election::{Election, Step},
    metrics::Metrics,
};

pub(crate) const NAME: &str = "lockgate-gates-controller";

/// Until when this process may write; `None` while another holds the lease.
pub(crate) type Held = watch::Receiver<Option<Instant>>;

pub(crate) struct Leader {
    kube: Kube,
    place: Place,
    election: Election,
    timing: Timing,
    start: Instant,
    empty: Value,
    held: watch::Sender<Option<Instant>>,
    metrics: Metrics,
}

impl Leader {
    pub(crate) fn new(kube: Kube, place: Place, options: &Options) -> (Leader, Held) {
        let (held, receiver) = watch::channel(None);
        let (timing, metrics) = (options.timing, options.metrics.clone());
        let election = Election::new(&options.identity, timing.lease);
        let metadata = json!({"name": NAME, "namespace": place.namespace});
        let empty = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata});
        (Leader { kube, place, election, timing, start: Instant::now(), empty, held, metrics }, receiver)
    }

    /// Takes and renews the lease for ever.
    pub(crate) async fn run(&mut self) {
        loop {
            // Counted from before the call: the API may take its time to answer.
            let asked = Instant::now();
            match self.attempt().await {
                Ok(true) => self.set(Some(asked + self.timing.give_up)),
                Ok(false) => self.set(None),
                Err(error) => tracing::warn!(%error, "cannot renew the lease"),
            }
            if self.held.borrow().is_some_and(|until| until <= Instant::now()) {
                self.set(None);
            }
            tokio::time::sleep(self.timing.retry).await;
        }
    }

    fn set(&self, until: Option<Instant>) {
        let (was, is) = (self.held.borrow().is_some(), until.is_some());
        self.metrics.leads(is);
        if was != is {
            let identity = self.election.identity();
            tracing::info!(identity, "{}", if is { "holds the lease" } else { "does not hold the lease any more" });
        }
        self.held.send_replace(until);
    }

    /// True if the lease is ours now.
    async fn attempt(&mut self) -> Result<bool, ApiError> {
        let lease = self.kube.get(&self.place, NAME).await?;
        let step = self.election.decide(lease.as_ref(), &self.empty, self.start.elapsed(), &kubeapi::micro_time());
        let result = match step {
            Step::Wait => return Ok(false),
            Step::Create(lease) => self.kube.create(&self.place, &lease).await,
            Step::Update(lease) => self.kube.update(&self.place, &lease).await,
        };
        match result {
            Ok(_) => Ok(true),
            Err(error) if error.cause() == Cause::Conflict => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn release(&self) {
        let attempt = async {
            let Some(lease) = self.kube.get(&self.place, NAME).await? else { return Ok(()) };
            let Some(free) = self.election.released(&lease) else { return Ok(()) };
            self.kube.update(&self.place, &free).await.map(drop)
        };
        if let Ok(Err(error)) =
            tokio::time::timeout(Duration::from_secs(3), attempt).await as Result<Result<(), ApiError>, _>
        {
            tracing::warn!(%error, "could not give the lease back; it ends by itself");
        }
    }
}
