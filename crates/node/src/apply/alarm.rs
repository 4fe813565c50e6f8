//! Alarms: which members have reported no space or corruption.

use std::collections::BTreeSet;

use parking_lot::RwLock;
use proto::etcdserverpb::{AlarmMember, AlarmRequest, AlarmResponse, AlarmType, alarm_request::AlarmAction};
use storage::{Batch, schema};

use super::State;

/// The kind that stands for all kinds.
const ALL: i32 = AlarmType::None as i32;

/// The alarms that are on, by kind and member.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    on: RwLock<BTreeSet<(i32, u64)>>,
}

impl Alarms {
    pub(crate) fn new(alarms: impl IntoIterator<Item = AlarmMember>) -> Alarms {
        Alarms { on: RwLock::new(alarms.into_iter().map(|a| (a.alarm, a.member_id)).collect()) }
    }

    /// Forgets all, and takes those of another database.
    pub(crate) fn reload(&self, view: &storage::View) -> Result<(), schema::DecodeError> {
        let alarms = schema::alarm::all(view)?;
        *self.on.write() = alarms.into_iter().map(|a| (a.alarm, a.member_id)).collect();
        Ok(())
    }

    pub(crate) fn no_space(&self) -> bool {
        self.has(AlarmType::Nospace)
    }

    pub(crate) fn corrupt(&self) -> bool {
        self.has(AlarmType::Corrupt)
    }

    /// The alarms of one kind, by its number, or all alarms for `NONE`.
    pub(crate) fn list(&self, kind: i32) -> Vec<AlarmMember> {
        let on = self.on.read();
        on.iter()
            .filter(|(alarm, _)| kind == ALL || *alarm == kind)
            .map(|(alarm, member_id)| AlarmMember { member_id: *member_id, alarm: *alarm })
            .collect()
    }

    fn has(&self, kind: AlarmType) -> bool {
        let on = self.on.read();
        // Almost always empty; this is asked for every entry.
        !on.is_empty() && on.iter().any(|(alarm, _)| *alarm == kind as i32)
    }
}

impl State {
    /// Numbers of unknown kinds are stored and listed as etcd does, so that the alarm bucket has the same bytes on every
    /// member.
    pub(super) fn alarm(&mut self, batch: &mut Batch<'_>, request: &AlarmRequest) -> AlarmResponse {
        let alarm = AlarmMember { member_id: request.member_id, alarm: request.alarm };
        let key = (alarm.alarm, alarm.member_id);
        let alarms = match request.action() {
            AlarmAction::Get => self.alarms.list(request.alarm),
            AlarmAction::Activate if request.alarm == ALL => Vec::new(),
            AlarmAction::Activate => {
                if self.alarms.on.write().insert(key) {
                    schema::alarm::put(batch, &alarm);
                }
                vec![alarm]
            }
            AlarmAction::Deactivate => {
                if self.alarms.on.write().remove(&key) {
                    schema::alarm::delete(batch, &alarm);
                    vec![alarm]
                } else {
                    Vec::new()
                }
            }
        };
        AlarmResponse { header: self.header(), alarms }
    }
}

#[cfg(test)]
mod tests {
    use proto::etcdserverpb::InternalRaftRequest;

    use super::{super::required_tests::Applier, *};

    fn ask(applier: &mut Applier, action: AlarmAction, member_id: u64, alarm: i32) -> Vec<(u64, i32)> {
        let request = AlarmRequest { action: action as i32, member_id, alarm };
        let request = InternalRaftRequest { alarm: Some(request), ..Default::default() };
        match applier.apply(request) {
            Ok(super::super::Response::Alarm(response)) => {
                response.alarms.iter().map(|alarm| (alarm.member_id, alarm.alarm)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Compared with etcd 3.7.3, request by request.
    #[test]
    fn alarms_of_unknown_kinds_are_kept_by_their_number() {
        use AlarmAction::{Activate, Deactivate, Get};
        let mut applier = Applier::at("3.8.0");
        for (action, member, alarm, want) in [
            (Activate, 7, 0, &[][..]),
            (Activate, 7, 9, &[(7, 9)]),
            (Activate, 7, 9, &[(7, 9)]),
            (Activate, 8, -3, &[(8, -3)]),
            (Activate, 8, AlarmType::Corrupt as i32, &[(8, 2)]),
            (Get, 0, 0, &[(8, -3), (8, 2), (7, 9)]),
            (Get, 0, 9, &[(7, 9)]),
            (Get, 0, 4, &[]),
            (Deactivate, 7, 4, &[]),
            (Deactivate, 8, -3, &[(8, -3)]),
            (Deactivate, 8, -3, &[]),
        ] {
            assert_eq!(ask(&mut applier, action, member, alarm), want, "{action:?} {member} {alarm}");
        }
        let stored = schema::alarm::all(&applier.state.backend.view()).expect("decodes");
        assert_eq!(stored.iter().map(|a| (a.member_id, a.alarm)).collect::<Vec<_>>(), [(7, 9), (8, 2)]);
    }
}
