//! What holds of the gate after any sequence of entries, also of those that no sound member sends.

use std::collections::BTreeMap;

use membership::{Change, Cluster, ClusterId, Member, MemberId};
use proptest::prelude::*;
use proto::{
    Version,
    membershippb::{ClusterFeatureGateSetRequest, Feature, FeatureGateProposal},
};

#[derive(Clone, Debug)]
enum Entry {
    /// Planned by the member itself, if it has something to say.
    Publish(u64, BTreeMap<String, bool>),
    /// Anything.
    Proposal(u64, FeatureGateProposal),
    /// Made by a leader, if it has something to say.
    Decide,
    /// Anything.
    Decision(String, ClusterFeatureGateSetRequest),
    Version(u16),
    Add(u64, bool),
    Promote(u64),
    Remove(u64),
}

fn cluster() -> Cluster {
    let members = [1, 2].map(|id| (MemberId(id), member(id, false)));
    let version = Some(Version::new(3, 8));
    Cluster::new(ClusterId(1), MemberId(1), members.into(), Default::default(), version).with_learners_max(3)
}

fn member(id: u64, is_learner: bool) -> Member {
    Member { id: MemberId(id), peer_urls: vec![format!("http://{id}")], is_learner, ..Member::default() }
}

/// Whether the entry was taken.
fn apply(cluster: &mut Cluster, index: u64, entry: &Entry) -> bool {
    match entry {
        Entry::Publish(id, wanted) => {
            cluster.local = MemberId(*id);
            let planned = cluster.plan_proposal(wanted);
            planned.is_some_and(|proposal| cluster.apply_proposal(index, MemberId(*id), &proposal).is_ok())
        }
        Entry::Proposal(id, proposal) => cluster.apply_proposal(index, MemberId(*id), proposal).is_ok(),
        Entry::Decide => {
            let version = cluster.version().map_or(String::new(), |version| version.stored());
            cluster.decide_gate().is_some_and(|decision| cluster.apply_decision(index, &version, &decision).is_ok())
        }
        Entry::Decision(version, decision) => cluster.apply_decision(index, version, decision).is_ok(),
        Entry::Version(minor) => cluster.apply_version(index, Version::new(3, *minor)).changed,
        Entry::Add(id, as_learner) => {
            change(cluster, index, Change::Add { member: member(*id, *as_learner), as_learner: *as_learner })
        }
        Entry::Promote(id) => change(cluster, index, Change::Promote(MemberId(*id))),
        Entry::Remove(id) => change(cluster, index, Change::Remove(MemberId(*id))),
    }
}

fn run<'a>(cluster: &mut Cluster, from: u64, entries: impl IntoIterator<Item = &'a Entry>) {
    for (index, entry) in (from..).zip(entries) {
        apply(cluster, index, entry);
    }
}

fn change(cluster: &mut Cluster, index: u64, change: Change) -> bool {
    cluster.apply_at(index, change).is_ok()
}

fn values() -> impl Strategy<Value = BTreeMap<String, bool>> {
    proptest::collection::btree_map("[A-C]", proptest::bool::weighted(0.8), 0..3)
}

fn features() -> impl Strategy<Value = Vec<Feature>> {
    values().prop_map(|values| values.into_iter().map(|(name, enabled)| Feature { name, enabled }).collect())
}

fn version() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just("3.8.0".to_owned()), 1 => Just("3.9.0".to_owned()), 1 => "[0-9.a]{0,5}"]
}

fn entry() -> impl Strategy<Value = Entry> {
    let id = || 1u64..5;
    let proposal = (version(), 0u64..30, features()).prop_map(|(version, replaces, features)| FeatureGateProposal {
        version,
        replaces,
        features,
    });
    let decision = (features(), 0u64..30)
        .prop_map(|(feature_gates, decided_from)| ClusterFeatureGateSetRequest { feature_gates, decided_from });
    prop_oneof![
        6 => (id(), values()).prop_map(|(id, values)| Entry::Publish(id, values)),
        2 => (id(), proposal).prop_map(|(id, proposal)| Entry::Proposal(id, proposal)),
        4 => Just(Entry::Decide),
        1 => (version(), decision).prop_map(|(version, decision)| Entry::Decision(version, decision)),
        1 => (7u16..10).prop_map(Entry::Version),
        1 => (id(), any::<bool>()).prop_map(|(id, learner)| Entry::Add(id, learner)),
        1 => id().prop_map(Entry::Promote),
        1 => id().prop_map(Entry::Remove),
    ]
}

/// The invariant, said without the code that keeps it.
fn follows(cluster: &Cluster) -> bool {
    let says_on = |id, feature: &String| {
        let proposal = cluster.gate().proposals.get(&id);
        proposal.is_some_and(|p| Some(p.version) == cluster.version() && p.features.get(feature) == Some(&true))
    };
    cluster.gate().enabled.iter().all(|feature| cluster.voters().all(|id| says_on(id, feature)))
}

proptest! {
    #[test]
    fn what_is_on_every_voter_wants_on(entries in proptest::collection::vec(entry(), 0..40)) {
        let mut cluster = cluster();
        for (index, entry) in (10..).zip(&entries) {
            let before = cluster.gate().clone();
            let is_taken = apply(&mut cluster, index, entry);
            prop_assert!(cluster.check_gate().is_ok() && follows(&cluster), "{entry:?}");
            prop_assert!(is_taken || *cluster.gate() == before, "refused means untouched: {entry:?}");
            let mut loaded = cluster.clone();
            prop_assert!(loaded.mend_gate(index, 2).is_empty() && loaded.gate() == cluster.gate(), "{entry:?}");
        }
    }

    #[test]
    fn the_order_of_different_members_proposals_does_not_matter(
        entries in proptest::collection::vec(entry(), 0..20),
        first in values(),
        second in values(),
    ) {
        let mut cluster = cluster();
        run(&mut cluster, 10, &entries);
        let ids: Vec<_> = cluster.members().map(|member| member.id.0).take(2).collect();
        prop_assume!(ids.len() == 2);
        let (first, second) = (Entry::Publish(ids[0], first), Entry::Publish(ids[1], second));
        let after = |entries: [&Entry; 2]| {
            let mut cluster = cluster.clone();
            run(&mut cluster, 100, entries);
            let says = |(id, p): (&MemberId, &membership::gate::Proposal)| (*id, p.version, p.features.clone());
            let proposals: Vec<_> = cluster.gate().proposals.iter().map(says).collect();
            let decides = cluster.decide_gate().map(|decision| decision.feature_gates);
            (cluster.gate().enabled.clone(), proposals, decides)
        };
        prop_assert_eq!(after([&first, &second]), after([&second, &first]));
    }

    #[test]
    fn twice_is_once(entries in proptest::collection::vec(entry(), 0..30), last in entry()) {
        let mut cluster = cluster();
        run(&mut cluster, 10, &entries);
        let doubled = match last {
            Entry::Decide => {
                let version = cluster.version().map_or(String::new(), |version| version.stored());
                cluster.decide_gate().map(|decision| Entry::Decision(version, decision))
            }
            Entry::Publish(id, values) => {
                cluster.local = MemberId(id);
                cluster.plan_proposal(&values).map(|proposal| Entry::Proposal(id, proposal))
            }
            // Only what is forwarded can be doubled with the same words.
            _ => None,
        };
        if let Some(doubled) = doubled {
            prop_assert!(apply(&mut cluster, 100, &doubled), "sound, so it is taken: {:?}", doubled);
            let once = cluster.gate().clone();
            apply(&mut cluster, 101, &doubled);
            prop_assert_eq!(cluster.gate(), &once);
        }
    }
}

/// Older ones go, one by one.
#[test]
fn the_last_thousand_changes_are_kept() {
    let (mut cluster, mut changes) = (cluster(), Vec::new());
    let says = |id, on| Entry::Publish(id, BTreeMap::from([("A".to_owned(), on)]));
    let flip = [says(1, true), says(2, true), Entry::Decide, says(1, false)];
    for (index, entry) in (10..).zip(flip.iter().cycle()).take(2_200) {
        apply(&mut cluster, index, entry);
        if cluster.gate().index == index {
            changes.push(index);
        }
    }
    assert!(changes.len() > membership::gate::HISTORY_MAX + 50, "{} changes", changes.len());
    let kept: Vec<u64> = cluster.gate().history.iter().map(|change| change.index).collect();
    assert_eq!(kept, changes[changes.len() - membership::gate::HISTORY_MAX..]);
}
