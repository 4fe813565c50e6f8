//! Messages of other members to the consensus core, of any content and in any role: taken or refused, never a panic,
//! and what is committed stays so.

use bytes::Bytes;
use node::sim::BareCore;
use proto::raftpb::{ConfState, Entry, Message, MessageType, Snapshot, SnapshotMetadata};

/// Bytes of an input that make one step.
const STEP: usize = 12;

fn entry(index: u64, term: u64) -> Entry {
    Entry { r#type: Some(0), index: Some(index), term: Some(term), data: Some(Bytes::from_static(b"x")) }
}

/// A follower with a log, a member without one, or a leader.
fn core(role: u8) -> BareCore {
    let log: Vec<_> = (1..=5).map(|index| entry(index, 1 + index / 4)).collect();
    let voters = vec![1, 2, 3];
    let mut core = if role % 3 == 1 { BareCore::start(voters, &[], 0) } else { BareCore::start(voters, &log, 3) };
    while role % 3 == 2 && !core.is_leader() {
        core.tick();
        for asked in core.work() {
            let kind = match asked.r#type() {
                MessageType::MsgPreVote => MessageType::MsgPreVoteResp,
                _ => MessageType::MsgVoteResp,
            };
            let answer = Message { r#type: Some(kind as i32), from: asked.to, to: Some(1), term: asked.term, ..asked };
            core.receive(&answer).expect("a valid answer");
        }
    }
    core
}

/// A number near those that matter to this core, or an extreme one.
fn number(core: &BareCore, choice: u8) -> Option<u64> {
    let (term, commit, last) = core.numbers();
    let near = [term, commit, last][usize::from(choice % 3)];
    Some(match choice / 3 % 16 {
        0 => return None,
        1 => 0,
        2 => 1,
        3 => u64::MAX,
        4 => u64::MAX >> 1,
        5 => (u64::MAX >> 1) + 1,
        6..=9 => near,
        10 => near.saturating_sub(1),
        11 => near.saturating_sub(2),
        12 | 13 => near + 1,
        14 => near + 2,
        _ => u64::from(choice),
    })
}

/// Entries that follow one another, or nearly so.
fn entries(core: &BareCore, first: u64, script: &[u8; STEP]) -> Vec<Entry> {
    let terms = [number(core, script[8]).unwrap_or(0), number(core, script[9]).unwrap_or(0)];
    let skip = u64::from(script[10] % 16 == 15);
    let index = |i: u64| first.wrapping_add(1 + i + if i > 0 { skip } else { 0 });
    let mut entries: Vec<_> =
        (0..u64::from(script[10] / 16 % 4)).map(|i| entry(index(i), terms[usize::from(i > 1)])).collect();
    if let (Some(last), 200..) = (entries.last_mut(), script[10]) {
        last.r#type = Some(i32::from(script[11] % 4));
    }
    entries
}

fn snapshot(core: &BareCore, script: &[u8; STEP]) -> Option<Snapshot> {
    let ids = |choice: u8| (0..4).filter(|bit| choice & (1 << bit) != 0).collect::<Vec<u64>>();
    let mut conf_state = ConfState { voters: ids(script[8]), learners: ids(script[8] >> 4), ..Default::default() };
    match script[9] % 32 {
        0 => conf_state.voters.push(1),
        1 => conf_state.voters_outgoing = vec![1, 2],
        2 => conf_state.learners_next = vec![2],
        3 => conf_state.auto_leave = Some(true),
        _ => {}
    }
    let (index, term) = (number(core, script[10]), number(core, script[11]));
    let metadata = SnapshotMetadata { index, term, conf_state: Some(conf_state) };
    Some(Snapshot { data: None, metadata: Some(metadata) })
}

fn message(core: &BareCore, script: &[u8; STEP]) -> Message {
    let kind = i32::from(script[1] % 24);
    let index = number(core, script[3]);
    Message {
        r#type: Some(kind),
        from: Some([2, 3, 2, 3, 4, 1, 0, 2][usize::from(script[2] % 8)]),
        to: Some(1),
        term: number(core, script[4]),
        log_term: number(core, script[5]),
        index,
        entries: entries(core, index.unwrap_or(0), script),
        commit: number(core, script[6]),
        snapshot: if kind == MessageType::MsgSnap as i32 { snapshot(core, script) } else { None },
        reject: Some(script[7].is_multiple_of(4)),
        reject_hint: number(core, script[7] / 4),
        context: (script[2] >= 128).then(|| Bytes::from_static(b"CampaignTransfer")),
        ..Message::default()
    }
}

#[test]
fn any_messages() {
    bolero::check!().with_iterations(20_000).with_max_len(40 * STEP).for_each(|input: &[u8]| {
        let Some((&role, script)) = input.split_first() else { return };
        let mut core = core(role);
        core.work();
        for step in script.as_chunks::<STEP>().0 {
            let (term, commit, _) = core.numbers();
            match step[0] {
                0..=15 => core.tick(),
                16..=31 => _ = core.propose(Bytes::from_static(b"y")),
                // Refused messages change nothing. A member that has lost its log ends, so it hears nothing more.
                _ => match core.receive(&message(&core, step)) {
                    Err(why) if why.contains("entries are lost from its log") => return,
                    Ok(()) | Err(_) => {}
                },
            }
            // Several messages may arrive before the core's work is carried out.
            if step[0] % 4 != 0 {
                core.work();
            }
            let now = core.numbers();
            assert!(now.0 >= term && now.1 >= commit && now.1 <= now.2, "{:?} after {:?}", now, (term, commit));
        }
    });
}
