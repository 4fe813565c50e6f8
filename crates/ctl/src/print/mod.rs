//! Answers on standard output, in the format asked for with `--write-out`.

mod admin;
mod auth;
mod downgrade;
mod endpoint;
mod feature_gate;
mod fields;
mod gate_history;
mod json;
mod kv;
mod lease;
mod member;
mod watch;

use std::io::Write;

use cli::Table;
use prost::Message;

pub(crate) use self::admin::{Downgraded, LeaderMoved};
pub(crate) use self::{
    auth::{Done, RoleShown, UserShown, revoked},
    downgrade::MemberDowngrade,
    endpoint::{EndpointHash, EndpointHealth, EndpointStatus},
    feature_gate::{EndpointGate, EndpointGates},
    gate_history::GateChanges,
    json::Object,
    lease::{Granted, Revoked, TimeToLive},
    member::{Promoted, Removed, Updated},
};
use crate::failure::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Fields,
    Json,
    Protobuf,
    Simple,
    Table,
}

impl Format {
    pub(crate) const NAMES: [&str; 5] = ["fields", "json", "protobuf", "simple", "table"];

    pub(crate) fn parse(name: &str) -> Option<Format> {
        use Format::*;
        let all = [Fields, Json, Protobuf, Simple, Table];
        all.into_iter().find(|format| format.name() == name)
    }

    fn name(self) -> &'static str {
        Format::NAMES[self as usize]
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub format: Format,
    pub hex: bool,
    pub value_only: bool,
}

type Out = Vec<u8>;

/// An answer that can be printed. What a format does not know returns `None`.
pub(crate) trait Show {
    fn simple(&self, style: Style, out: &mut Out);

    fn json(&self, style: Style) -> String;

    fn fields(&self, _style: Style, _out: &mut Out) -> Option<()> {
        None
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        None
    }

    fn table(&self) -> Option<Table> {
        None
    }
}

impl Style {
    pub(crate) fn show(self, answer: &impl Show) -> Result<(), Failure> {
        let mut out = Vec::new();
        let supported = match self.format {
            Format::Simple => {
                answer.simple(self, &mut out);
                true
            }
            Format::Json => {
                writeln(&mut out, &answer.json(self));
                true
            }
            Format::Fields => answer.fields(self, &mut out).is_some(),
            Format::Protobuf => answer.protobuf().map(|bytes| out = bytes).is_some(),
            Format::Table => answer.table().map(|table| out.extend(table.render().bytes())).is_some(),
        };
        if !supported {
            return Err(Failure::bad_feature(format!("{} not supported as output format", self.format.name())));
        }
        print(&out)
    }
}

/// Writes to standard output; a reader that went away ends the program without noise.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|_| Failure::told(1))
}

pub(crate) fn println(line: &str) -> Result<(), Failure> {
    print(format!("{line}\n").as_bytes())
}

fn writeln(out: &mut Out, line: &str) {
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

fn encode(message: &impl Message) -> Option<Vec<u8>> {
    Some(message.encode_to_vec())
}
