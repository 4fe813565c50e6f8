//! Answers about alarms, leadership and downgrades.

use client::pb::{AlarmMember, AlarmResponse, AlarmType, DowngradeResponse, MoveLeaderResponse};

use super::{Object, Out, Show, Style, encode, fields, writeln};

fn alarm_name(alarm: &AlarmMember) -> String {
    AlarmType::try_from(alarm.alarm).map_or_else(|_| alarm.alarm.to_string(), |kind| kind.as_str_name().to_owned())
}

impl Show for AlarmResponse {
    fn simple(&self, _: Style, out: &mut Out) {
        for alarm in &self.alarms {
            writeln(out, &format!("memberID:{} alarm:{}", alarm.member_id, alarm_name(alarm)));
        }
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.header);
        for alarm in &self.alarms {
            fields::id(out, style, "MemberID", alarm.member_id);
            fields::line(out, "AlarmType", alarm_name(alarm));
            writeln(out, "");
        }
        Some(())
    }

    fn json(&self, _: Style) -> String {
        let alarm = |alarm: &AlarmMember| {
            Object::new().uint("memberID", alarm.member_id).int("alarm", alarm.alarm.into()).end()
        };
        Object::new().header(&self.header).list("alarms", self.alarms.iter().map(alarm)).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(self)
    }
}

pub(crate) struct LeaderMoved {
    pub from: u64,
    pub to: u64,
    pub response: MoveLeaderResponse,
}

impl Show for LeaderMoved {
    fn simple(&self, _: Style, out: &mut Out) {
        writeln(out, &format!("Leadership transferred from {:x} to {:x}", self.from, self.to));
    }

    fn json(&self, _: Style) -> String {
        Object::new().header(&self.response.header).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(&self.response)
    }
}

pub(crate) struct Downgraded {
    pub action: &'static str,
    pub response: DowngradeResponse,
}

impl Show for Downgraded {
    fn simple(&self, _: Style, out: &mut Out) {
        writeln(out, &format!("Downgrade {} success, cluster version {}", self.action, self.response.version));
    }

    fn json(&self, _: Style) -> String {
        Object::new().header(&self.response.header).string("version", &self.response.version).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(&self.response)
    }
}
