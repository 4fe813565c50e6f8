//! Alarms: which members have reported no space or corruption.

use std::collections::BTreeSet;

use parking_lot::RwLock;
use proto::etcdserverpb::{AlarmMember, AlarmRequest, AlarmResponse, AlarmType, alarm_request::AlarmAction};
use storage::{Batch, schema};

use super::State;

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

    /// Those of one kind, or all.
    pub(crate) fn list(&self, kind: AlarmType) -> Vec<AlarmMember> {
        let on = self.on.read();
        on.iter()
            .filter(|(alarm, _)| kind == AlarmType::None || *alarm == kind as i32)
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
    pub(super) fn alarm(&mut self, batch: &mut Batch<'_>, request: &AlarmRequest) -> AlarmResponse {
        let alarm = AlarmMember { member_id: request.member_id, alarm: request.alarm };
        let key = (alarm.alarm, alarm.member_id);
        let alarms = match request.action() {
            AlarmAction::Get => self.alarms.list(request.alarm()),
            AlarmAction::Activate if request.alarm() == AlarmType::None => Vec::new(),
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
