//! A gate that is switched under load through two servers on one store: no answer contradicts the last answered switch.

use crate::common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Instant,
};

use common::{World, http::Http};
use harness::asynchronous::until;
use serde_json::{Value, json};

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/g.example.com/v1/namespaces/default/things";
const FLIPS: usize = 60;

struct Interval {
    from: Instant,
    to: Instant,
    on: bool,
}

fn definition() -> Value {
    let schema =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.g.example.com"},
        "spec": {"group": "g.example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "customFeatureGates": {"featureGates": [{"name": "N", "preRelease": "alpha", "enabled": false, "fieldPaths": [".spec.n"]}]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

/// Writes a new number repeatedly. Returns when, and whether the gate let it pass.
async fn write(mut http: Http, name: String, stop: Arc<AtomicBool>, done: Arc<AtomicUsize>) -> Vec<Interval> {
    let object = json!({"apiVersion": "g.example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {}});
    assert_eq!(http.json("POST", THINGS, object).await.code, 201);
    let mut answers = Vec::new();
    for n in 1.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let from = Instant::now();
        let answer = http.merge(&format!("{THINGS}/{name}"), json!({"spec": {"n": n}})).await;
        assert_eq!(answer.code, 200, "{}", answer.body);
        let on = answer.body["spec"]["n"] == n;
        assert_eq!(on, answer.warnings.is_empty(), "a dropped field comes with a warning: {:?}", answer.warnings);
        answers.push(Interval { from, to: Instant::now(), on });
        done.fetch_add(1, Ordering::Relaxed);
    }
    answers
}

/// The states a write could have met: that of the last flip answered before it, and those of flips during it.
fn possible(flips: &[Interval], write: &Interval) -> Vec<bool> {
    let before = flips.iter().rev().find(|flip| flip.to <= write.from);
    let during = flips.iter().filter(|flip| flip.to > write.from && flip.from < write.to);
    before.into_iter().chain(during).map(|flip| flip.on).collect()
}

#[test]
fn no_answer_contradicts_the_last_answered_flip() {
    let world = World::start();
    let other = world.another();
    let (flips, answers) = world.run(async {
        let mut flippers = [Http::connect(world.api()).await, Http::connect(&other).await];
        let begin = Instant::now();
        assert_eq!(flippers[0].json("POST", CRD, definition()).await.code, 201);
        let mut flips = vec![Interval { from: begin, to: Instant::now(), on: false }];
        let path = format!("{CRD}/things.g.example.com");
        // The second server has seen the definition when it serves its objects.
        let what = "the second server serves the objects";
        until(what, async || flippers[1].json("GET", THINGS, Value::Null).await.code == 200).await;
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut writers = Vec::new();
        for i in 0..4 {
            let http = Http::connect(if i % 2 == 0 { world.api() } else { &other }).await;
            writers.push(tokio::spawn(write(http, format!("t{i}"), stop.clone(), done.clone())));
        }
        for round in 0..FLIPS {
            let (on, from) = (round % 2 == 0, Instant::now());
            let gate = json!({"name": "N", "preRelease": "alpha", "enabled": on, "fieldPaths": [".spec.n"]});
            let patch = json!({"spec": {"customFeatureGates": {"featureGates": [gate]}}});
            assert_eq!(flippers[round / 2 % 2].merge(&path, patch).await.code, 200);
            flips.push(Interval { from, to: Instant::now(), on });
            // There are four writers: all answers after the next four belong to requests after the flip, on any machine.
            let enough = done.load(Ordering::Relaxed) + 4 + 8;
            until("writers have more answers", async || done.load(Ordering::Relaxed) >= enough).await;
        }
        stop.store(true, Ordering::Relaxed);
        let mut answers = Vec::new();
        for writer in writers {
            answers.extend(writer.await.expect("a writer"));
        }
        (flips, answers)
    });
    world.run(other.stop());
    let decided = answers.iter().map(|answer| (possible(&flips, answer), answer.on));
    let decided: Vec<_> = decided.filter(|(states, _)| states.iter().all(|state| *state == states[0])).collect();
    assert!(decided.len() > FLIPS, "only {} of {} answers can be checked", decided.len(), answers.len());
    let wrong = decided.iter().filter(|(states, on)| states[0] != *on).count();
    assert_eq!(wrong, 0, "of {} answers", decided.len());
}
