//! A test of the checker: every rule of the protocol, broken, is found, by the check that is about it.

use membership::mutant::{
    Rule::{self, *},
    break_rule,
};
use model::{Config, Counts, explore_for};
use test_case::test_case;

const INVARIANT: &str = "what is on, every voter's proposal for this version says on";
const LIVENESS: &str = "without faults, what all voters want on comes on";
const APPENDED: &str = "nothing newer than the log's cluster version is appended";
const OLD_FLAGS: &str = "a late proposal does not bring old flags back";
const RELEVANT: &str = "the relevant index moves with voters, proposals and version";
const STALE: &str = "a stale decision changes nothing";
const VERSION: &str = "another version leaves neither gate nor proposals";
const VOID: &str = "what is void, or what no sound member sends, has no effect";
const MENDED: &str = "a damaged database is put right";
const LEADERS: &str = "a new leader decides what the old one would";

/// The function that breaks one rule, because a function knows no variables.
macro_rules! breaks {
    ($rule:ident) => {
        ($rule, || break_rule(Some($rule)))
    };
}

#[test_case(breaks!(MadeForThisVersion), VOID; "made for this version")]
#[test_case(breaks!(ProposerIsMember), "only members have proposals"; "proposer is member")]
#[test_case(breaks!(Predecessor), OLD_FLAGS; "predecessor")]
#[test_case(breaks!(VersionIsPredecessor), OLD_FLAGS; "version is predecessor")]
#[test_case(breaks!(OffAtProposal), INVARIANT; "off at proposal")]
#[test_case(breaks!(OffAtNewVoter), INVARIANT; "off at new voter")]
#[test_case(breaks!(Stale), STALE; "stale")]
#[test_case(breaks!(DecisionFollows), VOID; "decision follows")]
#[test_case(breaks!(ProposalIsRelevant), RELEVANT; "proposal is relevant")]
#[test_case(breaks!(VersionIsRelevant), RELEVANT; "version is relevant")]
#[test_case(breaks!(VotersAreRelevant), RELEVANT; "voters are relevant")]
#[test_case(breaks!(VersionEmptiesGate), VERSION; "version empties gate")]
#[test_case(breaks!(VersionClearsProposals), VERSION; "version clears proposals")]
#[test_case(breaks!(NoGateBelow), VERSION; "no gate below")]
#[test_case(breaks!(RemovalDropsProposal), "only members have proposals"; "removal drops proposal")]
#[test_case(breaks!(OnlyVotersCount), LIVENESS; "only voters count")]
#[test_case(breaks!(EveryVoterProposes), INVARIANT; "every voter proposes")]
#[test_case(breaks!(EveryVoterSaysOn), INVARIANT; "every voter says on")]
#[test_case(breaks!(ProposalIsCurrent), MENDED; "proposal is current")]
#[test_case(breaks!(PromotionIsChecked), "a promotion turns nothing off"; "promotion is checked")]
#[test_case(breaks!(PromotionNeedsProposal), "who is promoted has proposed"; "promotion needs proposal")]
#[test_case(breaks!(NoNeedlessDecision), LEADERS; "no needless decision")]
#[test_case(breaks!(NoNeedlessProposal), LIVENESS; "no needless proposal")]
#[test_case(breaks!(NoProposalBelow), "nobody sends what its cluster version does not allow"; "no proposal below")]
#[test_case(breaks!(AppendIsChecked), APPENDED; "append is checked")]
#[test_case(breaks!(VersionsAheadCount), APPENDED; "versions ahead count")]
#[test_case(breaks!(GateOfAnotherLife), "a restored database begins with neither gate nor proposals"; "gate of another life")]
#[test_case(breaks!(GateBeforeAnyLeader), "a restored database begins with neither gate nor proposals"; "gate before any leader")]
#[test_case(breaks!(ProposalOfAnotherLife), MENDED; "proposal of another life")]
#[test_case(breaks!(ProposalOfNobody), MENDED; "proposal of nobody")]
#[test_case(breaks!(LoadBelow), MENDED; "load below")]
#[test_case(breaks!(LoadFollows), MENDED; "load follows")]
fn is_found((rule, prepare): (Rule, fn()), by: &str) {
    let report = explore_for(config(rule), 1, prepare, Some(by));
    println!("{rule:?}: {report}");
    assert!(report.broken.iter().any(|(name, _)| *name == by), "{rule:?} is to be found by {by:?}: {report}");
}

/// Small, and with all that the rule is about. Void messages stay sent, and ids stay as they are: what a broken rule does
/// shall be seen to happen, also if it is about the order of members.
fn config(rule: Rule) -> Config {
    let none = Counts::all(0);
    let counts = match rule {
        ProposerIsMember | RemovalDropsProposal => Counts { removals: 1, ..none },
        OffAtNewVoter | VotersAreRelevant | OnlyVotersCount => Counts { joins: 1, ..none },
        PromotionIsChecked | PromotionNeedsProposal => Counts { joins: 1, promotions: 1, ..none },
        Predecessor | OffAtProposal | Stale => Counts { crashes: 2, ..none },
        VersionIsPredecessor => Counts { crashes: 1, versions: 3, ..none },
        _ => Counts { crashes: 1, versions: 1, ..none },
    };
    let lag = matches!(rule, VersionsAheadCount | AppendIsChecked);
    Config { keep_void: true, symmetry: false, lag, ..Config::new(counts) }
}
