//! Messages and databases on their way between machines.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read as _},
};

use membership::MemberId;
use node::Database;
use proto::raftpb;

use crate::{
    check::Checked,
    clock::MS,
    event::{Event, Place},
    network::Outgoing,
    simulation::Simulation,
};

/// Databases on their way. They are read at the end of it: the sender's file changes meanwhile.
#[derive(Default)]
pub(crate) struct Transfers {
    next: u64,
    under_way: BTreeMap<u64, Transfer>,
}

struct Transfer {
    from: Place,
    to: usize,
    message: raftpb::Message,
    database: Database,
}

impl Transfers {
    /// The sender has ended, and with it what it was sending.
    pub(crate) fn drop_from(&mut self, machine: usize) {
        self.under_way.retain(|_, transfer| transfer.from.machine != machine);
    }

    /// Ends the transfers of a machine to receivers for which `is_gone` holds. Returns their sender and receiver.
    fn abort(&mut self, machine: usize, is_gone: impl Fn(u64) -> bool) -> Vec<(Place, u64)> {
        let mut aborted = Vec::new();
        self.under_way.retain(|_, transfer| {
            let ends = transfer.from.machine == machine && is_gone(transfer.message.to());
            aborted.extend(ends.then(|| (transfer.from, transfer.message.to())));
            !ends
        });
        aborted
    }
}

impl Simulation {
    /// Takes what the machine's member has sent and puts it on its way.
    pub(crate) fn send_all(&mut self, machine: usize) -> Checked {
        for (spent, outgoing) in self.machines[machine].outbox.take() {
            match outgoing {
                Outgoing::Message(message) => self.send(machine, spent, message)?,
                Outgoing::Snapshot(message, database) => self.begin_transfer(machine, message, database),
                Outgoing::SnapshotNowhere(to) => {
                    let place = self.place(machine);
                    self.queue.push(self.now + MS, Event::SnapshotReport { place, to, sent: false });
                }
            }
        }
        // A member that is removed takes with it what is under way to it, as with the peers of a process.
        let outbox = &self.machines[machine].outbox;
        for (place, to) in self.transfers.abort(machine, |to| !outbox.knows(to)) {
            self.note(("database aborted", machine, to));
            self.queue.push(self.now + MS, Event::SnapshotReport { place, to, sent: false });
        }
        Ok(())
    }

    fn send(&mut self, from: usize, spent: u64, message: raftpb::Message) -> Checked {
        for entry in &message.entries {
            if message.r#type() == raftpb::MessageType::MsgApp {
                self.checks.logged(entry)?;
            }
        }
        self.note((
            "send",
            from,
            message.to(),
            message.r#type() as i32,
            (message.term(), message.index(), message.commit(), message.entries.len()),
            spent,
        ));
        let Some(to) = self.find(message.to()) else { return Ok(()) };
        if self.random.percent(self.weather.loss_percent) {
            let place = self.place(from);
            if self.random.percent(20) {
                self.queue.push(self.now + spent + MS, Event::Unreachable { place, to: message.to() });
            }
            return Ok(());
        }
        // A transport may repeat anything but a proposal, which would then be applied twice, in etcd as well: each is sent
        // at most once.
        let may_repeat = message.r#type() != raftpb::MessageType::MsgProp;
        let copies = if may_repeat && self.random.percent(self.weather.twice_percent) { 2 } else { 1 };
        for _ in 0..copies {
            let at = self.now + spent + 100 + self.random.below(self.weather.delay_us_max);
            self.queue.push(at, Event::Deliver { from, to, message: Box::new(message.clone()) });
        }
        Ok(())
    }

    pub(crate) fn deliver(&mut self, from: usize, to: usize, message: Box<raftpb::Message>) -> Checked {
        if !self.machines[to].is_up() || self.cut.contains(&(from, to)) {
            let place = self.place(from);
            if self.random.percent(20) {
                self.queue.push(self.now + MS, Event::Unreachable { place, to: message.to() });
            }
            return Ok(());
        }
        let until = self.machines[to].paused_until;
        if until > self.now {
            self.queue.push(until, Event::Deliver { from, to, message });
            return Ok(());
        }
        let Some(member) = &self.machines[to].member else { return Ok(()) };
        if member.node().is_removed(MemberId(message.from())) {
            let place = self.place(from);
            self.queue.push(self.now + 5 * MS, Event::Gone(place));
            return Ok(());
        }
        self.machines[to].outbox.learn(MemberId(message.from()));
        member.node().receive(*message);
        self.wake(to);
        Ok(())
    }

    pub(crate) fn unreachable(&mut self, place: Place, to: u64) -> Checked {
        if !self.is_current(place) || self.delayed(place, Event::Unreachable { place, to }) {
            return Ok(());
        }
        if let Some(member) = &self.machines[place.machine].member {
            member.node().report_unreachable(MemberId(to));
        }
        self.wake(place.machine);
        Ok(())
    }

    pub(crate) fn gone(&mut self, place: Place) -> Checked {
        if !self.is_current(place) || self.delayed(place, Event::Gone(place)) {
            return Ok(());
        }
        if let Some(member) = &self.machines[place.machine].member {
            member.node().note_removed();
        }
        self.after_step(place.machine)
    }

    fn begin_transfer(&mut self, from: usize, message: raftpb::Message, database: Database) {
        let place = self.place(from);
        let index = message.snapshot.as_ref().and_then(|s| s.metadata.as_ref()).map_or(0, |m| m.index());
        self.note(("send database", from, message.to(), index));
        let Some(to) = self.find(message.to()) else {
            let to = message.to();
            self.queue.push(self.now + MS, Event::SnapshotReport { place, to, sent: false });
            return;
        };
        let number = self.transfers.next;
        self.transfers.next += 1;
        self.transfers.under_way.insert(number, Transfer { from: place, to, message, database });
        let slow = if self.random.percent(20) && !self.calm { 3_000 } else { 200 };
        let at = self.now + self.random.between(1, slow) * MS;
        self.queue.push(at, Event::TransferEnds(number));
    }

    pub(crate) fn end_transfer(&mut self, number: u64) -> Checked {
        let Some(Transfer { from, to, message, database }) = self.transfers.under_way.remove(&number) else {
            return Ok(());
        };
        let until = self.machines[to].paused_until.max(self.machines[from.machine].paused_until);
        if until > self.now {
            self.transfers.under_way.insert(number, Transfer { from, to, message, database });
            self.queue.push(until, Event::TransferEnds(number));
            return Ok(());
        }
        let lost = self.cut.contains(&(from.machine, to)) || (!self.calm && self.random.percent(10));
        let arrived = !lost && self.machines[to].is_up() && self.receive_database(to, message.clone(), database)?;
        self.note(("database", from.machine, to, arrived));
        // The sender may be told otherwise: the connection can break after the last byte.
        let sent = arrived && (self.calm || !self.random.percent(5));
        let at = self.now + self.random.between(1, 20) * MS;
        self.queue.push(at, Event::SnapshotReport { place: from, to: message.to(), sent });
        Ok(())
    }

    /// As the peer's server does: the file is whole and durable under its name before raft hears of it.
    fn receive_database(
        &mut self,
        to: usize,
        message: raftpb::Message,
        mut database: Database,
    ) -> Result<bool, crate::check::Violation> {
        let index = message.snapshot.as_ref().and_then(|s| s.metadata.as_ref()).map_or(0, |m| m.index());
        let machine = &self.machines[to];
        let Some(member) = &machine.member else { return Ok(false) };
        if member.node().is_removed(MemberId(message.from())) {
            return Ok(false);
        }
        let path = machine.dir().received(index);
        let save = || -> io::Result<()> {
            let mut bytes = Vec::with_capacity(database.len as usize);
            database.reader.read_to_end(&mut bytes)?;
            if bytes.len() as u64 != database.len {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if path.exists() { Ok(()) } else { fs::write(&path, bytes) }
        };
        if let Err(error) = { save }() {
            return self.fail(format!("cannot save a database: {error}"));
        }
        machine.outbox.learn(MemberId(message.from()));
        member.node().receive(message);
        self.wake(to);
        Ok(true)
    }

    pub(crate) fn snapshot_report(&mut self, place: Place, to: u64, sent: bool) -> Checked {
        if !self.is_current(place) || self.delayed(place, Event::SnapshotReport { place, to, sent }) {
            return Ok(());
        }
        if let Some(member) = &self.machines[place.machine].member {
            member.node().report_snapshot(MemberId(to), sent);
        }
        self.wake(place.machine);
        Ok(())
    }
}
