//! What a cluster says of itself: `status`, and `history`.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use featureset::{
    audit::{self, Trail},
    object::{Condition, FEATURE_SET_IN_FORCE, FeatureGate, find_condition},
    sync::DETERMINATION_DEGRADED,
};
use kubeapi::Place;
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, LOOK_EVERY, NO_GATE, Reach, block_on},
    output::Output,
};

/// Reasons for which the rows do not follow what the object says.
const NOT_FOLLOWED: [&str; 5] =
    ["OneWaySetLeft", "UnknownFeatureSet", "GateInBothLists", "SpecUnreadable", "AuditTrailUnreadable"];

#[derive(clap::Args, Debug)]
pub(crate) struct Status {
    /// Waits until everyone who acknowledges runs with the row of its version.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    reach: Reach,
}

#[derive(clap::Args, Debug)]
pub(crate) struct History {
    #[command(flatten)]
    reach: Reach,
}

impl Status {
    pub(crate) fn run(self) -> Result<Output> {
        block_on(async move {
            let (wait, cluster) = (self.wait, Cluster::connect(self.reach).await?);
            let end = Instant::now() + Duration::from_secs(cluster.reach.wait_seconds);
            loop {
                let (output, adopted) = status(&cluster).await?;
                if !wait || adopted {
                    return Ok(output);
                }
                if Instant::now() >= end {
                    return Ok(Output {
                        good: false,
                        text: output.text + "not everyone runs with its row yet\n",
                        ..output
                    });
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        })
    }
}

/// What to say, and whether everyone runs with its row. A FeatureGate whose rows lag behind its spec counts as not.
async fn status(cluster: &Cluster) -> Result<(Output, bool)> {
    let gate: Option<FeatureGate> = cluster.read(FeatureGate::PLURAL, FeatureGate::NAME).await?;
    let Some(gate) = gate else { bail!("{NO_GATE}; lockgate operator makes it") };
    let degraded = find_condition(&gate.status.conditions, DETERMINATION_DEGRADED);
    let seen = degraded.is_some_and(|condition| condition.observed_generation == gate.metadata.generation);
    // Everyone may run with its row, and the rows not be of what was chosen: that is no adoption of it.
    let follows = !degraded.is_some_and(|condition| condition.is_true() && NOT_FOLLOWED.contains(&&*condition.reason));
    let (set, followed) = (named(gate.spec.feature_set.as_deref()), named(Some(&gate.set_in_force())));
    let mut text = format!("set {set}{}\n", if seen { "" } else { ", which the controller has not seen yet" });
    if followed != set && !gate.status.feature_gates.is_empty() {
        text += &format!("rows are made from {followed}\n");
    }
    text += &describe(&gate, &followed);
    if !follows {
        text += "the rows do not follow what was chosen\n";
    }
    let mut all = seen && follows;
    let mut followers = Vec::new();
    for ack in cluster.acks().await? {
        let adopted = gate.row(&ack.version).is_some_and(|row| row.digest() == ack.digest);
        all &= adopted;
        let how = if adopted { "runs with its row" } else { "runs with an older row" };
        text += &format!("{} {} ({}): {how}\n", ack.component, ack.instance, ack.version);
        followers.push(
            json!({"component": ack.component, "instance": ack.instance, "version": ack.version, "adopted": adopted}),
        );
    }
    let json = json!({
        "featureSet": set, "rowsMadeFrom": followed, "observed": seen, "rows": gate.versions(), "followers": followers,
        "adopted": all, "conditions": gate.status.conditions.iter().filter(problem).collect::<Vec<_>>(),
    });
    Ok((Output::good(text, json), all))
}

/// As people have it.
fn named(set: Option<&str>) -> String {
    set.filter(|set| !set.is_empty()).unwrap_or("Default").to_owned()
}

/// Of the conditions that hold, this one is no problem.
fn problem(condition: &&Condition) -> bool {
    condition.is_true() && condition.kind != FEATURE_SET_IN_FORCE
}

/// What is wrong, and the rows.
fn describe(gate: &FeatureGate, followed: &str) -> String {
    let mut text = String::new();
    for condition in gate.status.conditions.iter().filter(problem) {
        text += &format!("{} ({}): {}\n", condition.kind, condition.reason, condition.message);
    }
    for row in &gate.status.feature_gates {
        let of = Some(named(Some(&gate.set_of_row(&row.version)))).filter(|of| of != followed);
        let of = of.map(|of| format!(", made from {of}")).unwrap_or_default();
        text += &format!("row {}: {} on, {} off{of}\n", row.version, row.enabled.len(), row.disabled.len());
    }
    if gate.status.feature_gates.is_empty() {
        text += "there are no rows yet: does the controller run?\n";
    }
    text
}

impl History {
    pub(crate) fn run(self) -> Result<Output> {
        block_on(async move {
            let cluster = Cluster::connect(self.reach).await?;
            let place = Place::namespaced("/api/v1", &cluster.reach.namespace, "configmaps");
            // By names, as the controller does: a label can be taken off.
            let trail = Trail::read(&cluster.kube.list(&place, None).await?)?;
            let mut text = String::new();
            if trail.entries.is_empty() {
                text += "no set was recorded yet: the audit trail is empty\n";
            }
            for entry in &trail.entries {
                let lists = [("+", &entry.enabled), ("-", &entry.disabled)];
                let names =
                    lists.iter().flat_map(|(mark, names)| names.iter().map(move |name| format!(" {mark}{name}")));
                let kind = match entry.kind {
                    audit::Kind::Chosen => "chosen",
                    audit::Kind::Refused if entry.choice().is_err() => "not followed, there is no such set",
                    audit::Kind::Refused => "not followed, a one-way set was chosen before",
                };
                let actor = entry.actor.as_deref().map(|actor| format!(" by {actor}")).unwrap_or_default();
                text += &format!("{}  {}{}  {kind}{actor}\n", entry.time, entry.set, names.collect::<String>());
            }
            let entries: Vec<Value> = trail.entries.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
            Ok(Output::good(text, json!({"entries": entries})))
        })
    }
}
