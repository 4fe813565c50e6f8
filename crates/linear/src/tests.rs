//! Verdicts on written and on random histories.

use random::Random;
use test_case::test_case;

use super::*;
use crate::search::step;

/// `w1 0-5` writes 1, `d 0-5` deletes, `r1 0-5` reads 1, `r- 0-5` reads nothing, `s1>2 0-5` swaps and did, `s1>2!3 0-5`
/// swaps and saw 3; `0-?` has an unknown outcome; `w1:2` has seen 2.
fn parse(text: &str) -> Vec<Operation> {
    text.split(", ").enumerate().map(|(client, part)| parse_one(client, part)).collect()
}

fn parse_one(client: usize, part: &str) -> Operation {
    let value = |text: &str| text.parse::<u64>().ok();
    let (what, when) = part.split_once(' ').unwrap();
    let (call, answer) = when.split_once('-').unwrap();
    let (kind, rest) = what.split_at(1);
    let (effect, seen) = match kind {
        "w" => {
            let (new, seen) = rest.split_once(':').map_or((rest, None), |(n, s)| (n, Some(value(s))));
            (Effect::Write(value(new)), seen)
        }
        "d" => (Effect::Write(None), None),
        "r" => (Effect::Read, Some(value(rest))),
        _ => {
            let (expected, new) = rest.split_once('>').unwrap();
            let (new, seen) = new.split_once('!').map_or((new, value(expected)), |(n, s)| (n, value(s)));
            (Effect::Swap { expected: value(expected), new: value(new).unwrap() }, Some(seen))
        }
    };
    let answer = answer.parse().ok();
    let seen = if answer.is_none() { None } else { seen };
    Operation { client, effect, seen, call: call.parse().unwrap(), answer }
}

#[test_case("w1 0-1, r1 2-3" => true; "in turn")]
#[test_case("r- 0-1, w1 2-3, r1 4-5" => true; "nothing at first")]
#[test_case("w1 0-1, w2 2-3, r1 4-5" => false; "stale read")]
#[test_case("w1 0-1, r- 2-3" => false; "nothing after a write")]
#[test_case("w1 0-1, r7 2-3" => false; "a value from nowhere")]
#[test_case("r1 0-1, w1 2-3" => false; "a value before its time")]
#[test_case("w1 0-10, w2 0-10, r2 1-3, r1 4-6" => true; "side by side")]
#[test_case("w1 0-10, w2 0-10, r2 1-3, r1 4-6, r2 7-8" => false; "there and back")]
#[test_case("w1 0-9, r1 2-3, r- 4-5" => false; "seen and then gone")]
#[test_case("w1 0-9, r- 2-3, r1 4-5" => true; "while it is written")]
#[test_case("w1 0-2, r- 2-3" => true; "answered in the moment of the next call")]
#[test_case("w1 0-?, r- 2-3, r1 8-9" => true; "an unknown write happens late")]
#[test_case("w1 0-?, r1 2-3, r- 8-9" => false; "an unknown write does not unhappen")]
#[test_case("w1 0-?, w2 2-3, r2 4-5, r1 6-7" => true; "an unknown write overtakes")]
#[test_case("r1 2-3, w1 5-?" => false; "an unknown write seen before it was sent")]
#[test_case("w1 0-1, s1>2 2-3, s1>3 4-5" => false; "one swap too many")]
#[test_case("w1 0-1, s1>2 2-5, s1>3!2 2-5, r2 6-7" => true; "a swap that lost")]
#[test_case("w1 0-1, s1>2 2-?, r2 6-7, r1 8-9" => false; "an unknown swap that was seen")]
#[test_case("w1 0-1, s9>2 2-?, r2 6-7" => false; "an unknown swap of what was never there")]
#[test_case("w1 0-?, s1>2 2-?, r2 6-7" => true; "an unknown swap of an unknown write")]
#[test_case("w1 0-?, s1>2 2-?, s2>3 2-?, r- 4-5, r3 6-7" => true; "unknown swaps in a row")]
#[test_case("w1 0-?, s1>2 2-?, s2>3 2-?, r3 4-5, r1 6-7" => false; "unknown swaps in a row do not unhappen")]
#[test_case("w1 0-1, d 2-3, r1 4-5" => false; "deleted")]
#[test_case("w1 0-1, d 2-?, r1 4-5, r- 6-7" => true; "an unknown deletion")]
#[test_case("w1 0-1, d 2-?, r- 4-5, r1 6-7" => false; "an unknown deletion does not unhappen")]
#[test_case("w1 0-1, w2:1 2-3, w3:1 4-5" => false; "an overwritten value seen twice")]
#[test_case("w1 0-9, w2 0-9, w3 0-9, r1 10-11, r2 10-11" => false; "two last values")]
fn verdicts(text: &str) -> bool {
    is_linearizable(&parse(text))
}

#[test]
fn the_first_answer_too_many_is_told() {
    let mut history = History::default();
    for operation in parse("w1 0-1, w2 2-3, r1 4-5, r2 6-7") {
        history.push("k", operation);
    }
    let told = history.check().unwrap_err().to_string();
    assert!(told.contains("key \"k\""), "{told}");
    assert!(told.trim_end().ends_with("client 2 4..5 Read saw Some(Some(1))"), "{told}");
}

/// A run of a real register with known faults: always explained, and not once one answer is changed.
#[test]
fn random_histories() {
    let mut random = Random::new(7);
    for _ in 0..200 {
        let mut operations = honest(&mut random);
        assert!(is_linearizable(&operations));
        let is_read = |i: &usize| operations[*i].effect == Effect::Read && operations[*i].answer.is_some();
        let reads: Vec<_> = (0..operations.len()).filter(is_read).collect();
        if let Some(&i) = random.pick(&reads) {
            operations[i].seen = Some(Some(1_000_000));
            assert!(!is_linearizable(&operations), "a value from nowhere");
        }
    }
}

/// Against a search that tries every order and every fate of what is unknown.
#[test]
fn small_histories_as_by_trying_everything() {
    let (mut random, mut verdicts) = (Random::new(11), [0, 0]);
    for _ in 0..20_000 {
        let operations: Vec<_> = (1..=random.between(2, 6)).map(|i| any(&mut random, i)).collect();
        let expected = try_everything(&operations, None);
        assert_eq!(is_linearizable(&operations), expected, "{operations:?}");
        verdicts[usize::from(expected)] += 1;
    }
    assert!(verdicts.iter().all(|n| *n > 2_000), "both must be there: {verdicts:?}");
}

fn any(random: &mut Random, i: u64) -> Operation {
    let some = |random: &mut Random| Some(random.below(6)).filter(|value| *value > 0);
    let effect = match random.below(5) {
        0 | 1 => Effect::Read,
        2 => Effect::Write(Some(i)),
        3 => Effect::Write(None),
        _ => Effect::Swap { expected: some(random), new: i },
    };
    let call = random.below(10);
    let answer = (!random.percent(35)).then(|| call + random.below(8));
    let seen = (answer.is_some() && (effect == Effect::Read || random.percent(30))).then(|| some(random));
    Operation { client: i as usize, effect, seen, call, answer }
}

fn try_everything(left: &[Operation], state: Option<Value>) -> bool {
    if left.iter().all(|o| o.answer.is_none()) {
        return true;
    }
    let deadline = left.iter().filter_map(|o| o.answer).min().unwrap_or(u64::MAX);
    (0..left.len()).filter(|i| left[*i].call <= deadline).any(|i| {
        let rest = [&left[..i], &left[i + 1..]].concat();
        step(state, &left[i]).is_some_and(|after| try_everything(&rest, after))
    })
}

fn honest(random: &mut Random) -> Vec<Operation> {
    let (mut state, mut out) = (None, Vec::new());
    for i in 0..120u64 {
        let (before, lost) = (state, random.percent(10));
        let effect = match random.below(3) {
            0 => Effect::Read,
            1 => Effect::Write(Some(i)),
            _ => Effect::Swap { expected: if random.percent(50) { state } else { Some(i / 2) }, new: i },
        };
        let operation = Operation { client: 0, effect, seen: None, call: 0, answer: None };
        // An operation takes effect at 10 * i, around which it is called and answered.
        if !lost || random.percent(50) {
            state = step(state, &operation).unwrap();
        }
        let call = (10 * i).saturating_sub(random.below(60));
        let answer = (!lost).then(|| 10 * i + 1 + random.below(60));
        out.push(Operation { seen: (!lost).then_some(before), call, answer, ..operation });
    }
    out
}

/// As many as a real run has, with one stale read at the end or none.
#[test]
fn long_histories_take_no_time() {
    let mut operations = Vec::new();
    for n in 0..5000 {
        let (value, at) = (n + 1, n * 10);
        let read =
            Operation { client: 1, effect: Effect::Read, seen: Some(Some(value)), call: at, answer: Some(at + 9) };
        operations.push(Operation { client: 0, effect: Effect::Write(Some(value)), seen: None, ..read });
        operations.extend((0..4).map(|k| Operation { call: at + k, ..read }));
    }
    assert!(is_linearizable(&operations));
    let (call, answer) = (60_000, Some(60_001));
    operations.push(Operation { client: 2, effect: Effect::Read, seen: Some(Some(4999)), call, answer });
    assert!(!is_linearizable(&operations));
}

/// Writes and deletions that may have happened keep their place open to the end of the history.
#[test]
fn many_lost_answers_take_no_time() {
    let mut operations = Vec::new();
    for n in 0..2000u64 {
        let (value, at) = (n + 1, n * 10);
        let effect = if n % 50 == 7 { Effect::Write(None) } else { Effect::Write(Some(value)) };
        let lost = n % 10 == 7;
        let write = Operation { client: 0, effect, seen: None, call: at, answer: (!lost).then_some(at + 5) };
        operations.push(write);
        if !lost {
            let seen = Some(Some(value));
            operations.push(Operation { effect: Effect::Read, seen, call: at + 6, answer: Some(at + 9), ..write });
        }
    }
    assert!(is_linearizable(&operations));
}
