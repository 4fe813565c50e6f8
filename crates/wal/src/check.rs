//! What the checksum does not cover: the checksum is over a record's data and not its type, and the data of an entry
//! also parses as a state. These checks tell them apart by what raft never does.

use bytes::Bytes;
use prost::Message;
use proto::raftpb::{Entry, EntryType, HardState};

/// The state in a state record that follows `before`.
pub(crate) fn parse_state(data: Bytes, before: &HardState) -> Result<HardState, String> {
    let state = HardState::decode(data.clone()).map_err(|e| format!("a hard state that does not decode: {e}"))?;
    if Entry::decode(data).is_ok_and(|entry| entry.data.is_some()) {
        return Err("an entry marked as a hard state".into());
    }
    if state.term() == 0 {
        return Err("a hard state of term 0".into());
    }
    if state.term() < before.term() {
        return Err(format!("term {} in a hard state after term {}", state.term(), before.term()));
    }
    if state.commit() < before.commit() {
        return Err(format!("commit {} in a hard state after commit {}", state.commit(), before.commit()));
    }
    Ok(state)
}

/// The entry in an entry record.
pub(crate) fn parse_entry(data: Bytes) -> Result<Entry, String> {
    let entry = Entry::decode(data).map_err(|e| format!("an entry that does not decode: {e}"))?;
    if entry.index() == 0 || entry.term() == 0 {
        return Err(format!("an entry of index {} and term {}", entry.index(), entry.term()));
    }
    if !is_known_type(&entry) {
        let kind = entry.r#type.unwrap_or_default();
        return Err(format!("entry {} of unknown type {kind}, or a conf change without data", entry.index()));
    }
    Ok(entry)
}

/// An empty ConfChangeV2 leaves a joint configuration; an empty ConfChange is nothing that raft writes.
pub(crate) fn is_known_type(entry: &Entry) -> bool {
    match EntryType::try_from(entry.r#type.unwrap_or_default()) {
        Ok(EntryType::EntryNormal | EntryType::EntryConfChangeV2) => true,
        Ok(EntryType::EntryConfChange) => entry.data.as_ref().is_some_and(|data| !data.is_empty()),
        Err(_) => false,
    }
}

/// Terms never fall along a log.
pub(crate) fn check_term(entry: &Entry, before: u64) -> Result<(), String> {
    if entry.term() < before {
        return Err(format!("entry {} of term {} after an entry of term {before}", entry.index(), entry.term()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(r#type: Option<i32>, term: u64, index: u64, data: Option<&'static [u8]>) -> Bytes {
        let data = data.map(Bytes::from_static);
        Entry { r#type, term: Some(term), index: Some(index), data }.encode_to_vec().into()
    }

    fn state(term: u64, vote: u64, commit: u64) -> HardState {
        HardState { term: Some(term), vote: Some(vote), commit: Some(commit) }
    }

    #[test]
    fn entries_are_not_taken_for_states() {
        let before = state(2, 7, 3);
        assert!(parse_state(entry(None, 2, 4, Some(b"x")), &before).is_err());
        assert!(parse_state(entry(None, 2, 4, None), &before).is_err());
        assert!(parse_state(entry(Some(0), 2, 4, None), &before).is_err());
        assert!(parse_state(entry(Some(1), 2, 4, Some(b"x")), &HardState::default()).is_err());
    }

    #[test]
    fn states_are_not_taken_for_entries() {
        let bytes = |s: HardState| Bytes::from(s.encode_to_vec());
        assert!(parse_entry(bytes(state(1, 77, 3))).is_err(), "a conf change without data");
        assert!(parse_entry(bytes(state(2, 0, 3))).is_err(), "term 0");
        assert!(parse_entry(bytes(state(3, 77, 3))).is_err(), "unknown type");
    }

    #[test]
    fn states_move_forward() {
        let bytes = |s: HardState| Bytes::from(s.encode_to_vec());
        assert!(parse_state(bytes(state(2, 7, 3)), &state(2, 7, 3)).is_ok());
        assert!(parse_state(bytes(state(2, 7, 2)), &state(2, 7, 3)).is_err());
        assert!(parse_state(bytes(state(1, 7, 3)), &state(2, 7, 3)).is_err());
    }
}
