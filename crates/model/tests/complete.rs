//! Complete explorations: nothing but the counts of events is bounded. Each prints how many states there are.
#![expect(clippy::disallowed_types, reason = "compared as a whole, never iterated")]

use std::collections::{BTreeSet, HashSet};

use model::{Config, Counts, Gates, explore};
use stateright::Model;
use test_case::test_case;

const NONE: Counts = Counts { crashes: 0, joins: 0, removals: 0, promotions: 0, versions: 0 };

/// Two of every kind of event in one exploration.
fn everything_twice() -> Config {
    Config::new(Counts::all(2))
}

/// Members that lag behind the log plan, decide and lead from where they are, and fall back when they crash.
fn lagging_behind_versions() -> Config {
    Config { lag: true, keep_void: true, ..Config::new(Counts { crashes: 1, versions: 2, ..NONE }) }
}

fn lagging_behind_members() -> Config {
    Config { lag: true, ..Config::new(Counts { joins: 1, removals: 1, promotions: 1, ..NONE }) }
}

/// Messages that should have no effect any more are never forgotten, and still have none; each id is its own.
fn all_messages_and_ids() -> Config {
    Config { keep_void: true, symmetry: false, ..Config::new(Counts::all(1)) }
}

/// Decisions about more than one feature, and binaries that know none.
fn two_features() -> Config {
    let counts = Counts { crashes: 1, joins: 1, promotions: 1, ..NONE };
    Config { features: 2, unknowing: true, ..Config::new(counts) }
}

fn three_voters_and_a_learner() -> Config {
    let counts = Counts { crashes: 2, removals: 1, promotions: 1, versions: 1, ..NONE };
    Config { voters: 3, learners: 1, ..Config::new(counts) }
}

#[test_case(everything_twice(); "two of every kind of event")]
#[test_case(lagging_behind_versions(); "lagging behind versions")]
#[test_case(lagging_behind_members(); "lagging behind members")]
#[test_case(all_messages_and_ids(); "all messages and ids")]
#[test_case(two_features(); "two features")]
#[test_case(three_voters_and_a_learner(); "three voters and a learner")]
fn holds(config: Config) {
    println!("{config:?}");
    let report = explore(config, 2, || {});
    println!("{report}");
    assert!(report.broken.is_empty() && report.unseen.is_empty(), "{report}");
}

/// Why most explorations do without members that lag: the log comes to the same states. (What a lagging leader appends is
/// explored above.)
#[test_case(Counts { crashes: 1, versions: 1, ..NONE }; "crashes and versions")]
#[test_case(Counts { joins: 1, promotions: 1, ..NONE }; "joins and promotions")]
fn lagging_members_bring_about_nothing_else(counts: Counts) {
    let outlines = |lag| reach(Config { lag, symmetry: false, ..Config::new(counts) });
    let (with, without) = (outlines(true), outlines(false));
    println!("{} states of the log", with.len());
    assert!(with.len() > 20 && with == without);
}

/// The states of the log that are reached.
fn reach(config: Config) -> BTreeSet<String> {
    let model = Gates::new(config, || {});
    let mut found: HashSet<_> = model.init_states().into_iter().collect();
    let mut next: Vec<_> = found.iter().cloned().collect();
    while let Some(state) = next.pop() {
        for state in model.next_states(&state) {
            if found.insert(state.clone()) {
                next.push(state);
            }
        }
    }
    found.iter().map(|state| state.outline()).collect()
}
