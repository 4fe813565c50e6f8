//! Clients: what they do next, what they were answered, and when they give up.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use linear::{Effect, Operation, Value};

use crate::{
    check::Checked,
    clock::MS,
    event::{Event, Place},
    operation::{self, Admin, Answer},
    simulation::Simulation,
};

/// Keys whose history is checked.
const KEYS: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Keys,
    Leases,
    /// Changes members and versions; acts when faults say so.
    Admin,
}

pub(crate) struct Client {
    kind: Kind,
    pending: Option<Pending>,
    /// What this client believes the keys hold.
    known: BTreeMap<String, Value>,
    /// The lease it cares for.
    lease: Option<i64>,
    /// The machine that it renews its lease with.
    home: Option<usize>,
    operations: u64,
}

/// What a client has asked for.
#[derive(Debug, Clone)]
pub(crate) enum Request {
    Key { key: String, effect: Effect },
    Compact(i64),
    Grant(i64, i64),
    Renew(i64),
    Attach(i64, Value),
    Revoke(i64),
    Admin,
}

struct Pending {
    number: u64,
    place: Place,
    request: Request,
    /// Among all calls and answers.
    call: u64,
    /// In virtual time.
    asked: u64,
    answer: Pin<Box<dyn Future<Output = Answer>>>,
}

impl Simulation {
    pub(crate) fn hire_clients(&mut self) {
        let keys = self.random.between(2, 6);
        let kinds = (0..keys).map(|_| Kind::Keys).chain([Kind::Leases, Kind::Leases, Kind::Admin]);
        for kind in kinds {
            let client = Client { kind, pending: None, known: BTreeMap::new(), lease: None, home: None, operations: 0 };
            self.clients.push(client);
        }
        for client in 0..self.clients.len() - 1 {
            let at = self.random.below(2_000) * MS;
            self.queue.push(at, Event::Client(client));
        }
    }

    pub(crate) fn admin(&self) -> usize {
        self.clients.len() - 1
    }

    pub(crate) fn is_idle(&self, client: usize) -> bool {
        self.clients[client].pending.is_none()
    }

    /// The client does something next, through any member that is up.
    pub(crate) fn client_acts(&mut self, client: usize) -> Checked {
        if self.calm || self.clients[client].pending.is_some() {
            return Ok(());
        }
        let up = self.up();
        let Some(&machine) = self.random.pick(&up) else {
            self.think(client);
            return Ok(());
        };
        match self.clients[client].kind {
            Kind::Keys => {
                let request = self.key_request(client, machine);
                self.ask(client, machine, request)
            }
            Kind::Leases => {
                let (request, machine) = self.lease_request(client, machine);
                self.ask(client, machine, request)
            }
            Kind::Admin => Ok(()),
        }
    }

    fn key_request(&mut self, client: usize, machine: usize) -> Request {
        let key = format!("k{}", self.random.below(KEYS));
        let effect = match self.random.below(100) {
            0..45 => Effect::Read,
            45..70 => Effect::Write(Some(self.value())),
            70..92 => {
                let expected = self.clients[client].known.get(&key).copied();
                Effect::Swap { expected, new: self.value() }
            }
            92..97 => Effect::Write(None),
            _ => {
                let member = self.machines[machine].member.as_ref();
                let revision = member.map_or(0, |member| member.node().store().revision());
                return Request::Compact(revision - self.random.below(20) as i64);
            }
        };
        Request::Key { key, effect }
    }

    fn lease_request(&mut self, client: usize, machine: usize) -> (Request, usize) {
        let Some(id) = self.clients[client].lease else {
            let id = self.value() as i64;
            self.clients[client].lease = Some(id);
            self.report.leases += 1;
            return (Request::Grant(id, self.random.between(1, 5) as i64), machine);
        };
        match self.random.below(100) {
            0..70 => {
                let home = self.lease_home(client, machine);
                (Request::Renew(id), home)
            }
            70..90 => (Request::Attach(id, self.value()), machine),
            90..95 => {
                self.clients[client].lease = None;
                (Request::Renew(id), machine)
            }
            _ => {
                self.clients[client].lease = None;
                (Request::Revoke(id), machine)
            }
        }
    }

    /// Renewals go to the leader, as far as the server knows one, and stay with it as long as it believes to lead: also with
    /// one that others have replaced.
    fn lease_home(&mut self, client: usize, machine: usize) -> usize {
        let leads = |i: usize| self.machines[i].member.as_ref().is_some_and(|member| member.leads().1);
        let home = self.clients[client].home.filter(|home| leads(*home));
        let home = home.or_else(|| {
            let member = self.machines[machine].member.as_ref();
            let leader = member.and_then(|member| self.find(member.node().status().leader));
            leader.filter(|leader| self.machines[*leader].is_up())
        });
        self.clients[client].home = home;
        home.unwrap_or(machine)
    }

    fn value(&mut self) -> Value {
        self.next_value += 1;
        self.next_value
    }

    fn ask(&mut self, client: usize, machine: usize, request: Request) -> Checked {
        let Some(member) = &self.machines[machine].member else { return Ok(()) };
        let node = member.node().clone();
        let answer: Pin<Box<dyn Future<Output = Answer>>> = match request.clone() {
            Request::Key { key, effect } => Box::pin(operation::key_operation(node, key, effect)),
            Request::Compact(revision) => Box::pin(operation::compact(node, revision)),
            Request::Grant(id, ttl) => Box::pin(operation::grant(node, id, ttl)),
            Request::Renew(id) => Box::pin(operation::renew(node, id)),
            Request::Attach(id, value) => Box::pin(operation::attach(node, id, format!("lease-{id}"), value)),
            Request::Revoke(id) => {
                self.checks.leases.revoke(id);
                Box::pin(operation::revoke(node, id))
            }
            Request::Admin => return Ok(()),
        };
        self.put_question(client, machine, request, answer)
    }

    /// A change of the cluster, by the one who administers it.
    pub(crate) fn ask_admin(&mut self, machine: usize, change: Admin) -> Checked {
        let Some(member) = &self.machines[machine].member else { return Ok(()) };
        let answer = Box::pin(operation::admin(member.node().clone(), change));
        let admin = self.admin();
        self.put_question(admin, machine, Request::Admin, answer)
    }

    fn put_question(
        &mut self,
        client: usize,
        machine: usize,
        request: Request,
        answer: Pin<Box<dyn Future<Output = Answer>>>,
    ) -> Checked {
        self.note(("ask", client, machine, format!("{request:?}")));
        self.moments += 1;
        let (place, call, asked) = (self.place(machine), self.moments, self.now);
        let c = &mut self.clients[client];
        c.operations += 1;
        let number = c.operations;
        c.pending = Some(Pending { number, place, request, call, asked, answer });
        self.report.operations += 1;
        let patience = self.random.between(300, 3_000) * MS;
        self.queue.push(self.now + patience, Event::GiveUp { client, operation: number });
        self.wake(machine);
        self.poll_clients(machine)
    }

    /// Clients whose answer is there take it.
    pub(crate) fn poll_clients(&mut self, machine: usize) -> Checked {
        if self.machines[machine].paused_until > self.now {
            return Ok(());
        }
        let place = self.place(machine);
        let mut context = Context::from_waker(Waker::noop());
        for client in 0..self.clients.len() {
            let c = &mut self.clients[client];
            let Some(pending) = c.pending.as_mut().filter(|pending| pending.place == place) else { continue };
            if let Poll::Ready(answer) = pending.answer.as_mut().poll(&mut context) {
                self.answered(client, answer)?;
            }
        }
        Ok(())
    }

    pub(crate) fn give_up(&mut self, client: usize, operation: u64) -> Checked {
        if self.clients[client].pending.as_ref().is_some_and(|pending| pending.number == operation) {
            self.answered(client, Answer::Unknown)?;
        }
        Ok(())
    }

    /// The process that was asked has ended.
    pub(crate) fn drop_clients_of(&mut self, machine: usize) {
        for client in 0..self.clients.len() {
            let asked = self.clients[client].pending.as_ref().is_some_and(|p| p.place.machine == machine);
            if asked {
                // An unknown answer breaks no promise.
                let _ = self.answered(client, Answer::Unknown);
            }
        }
    }

    fn answered(&mut self, client: usize, answer: Answer) -> Checked {
        let Some(Pending { request, call, asked, place, .. }) = self.clients[client].pending.take() else {
            return Ok(());
        };
        self.moments += 1;
        self.report.unknown += u64::from(answer == Answer::Unknown);
        self.note(("answer", client, place.machine, format!("{answer:?}")));
        self.think(client);
        match (request, answer) {
            (Request::Key { key, effect }, answer) => {
                self.key_answered(client, key, effect, call, answer);
                Ok(())
            }
            (Request::Grant(id, _), Answer::Lease(Some(ttl))) => self.checks.leases.promise(id, asked, ttl),
            (Request::Renew(id), Answer::Lease(Some(ttl))) => self.checks.leases.promise(id, asked, ttl),
            (Request::Renew(id), Answer::Lease(None)) => {
                self.clients[client].lease = None;
                self.checks.leases.told_gone(id, self.now)
            }
            // Nobody knows whether there is such a lease, or there is none.
            (Request::Grant(..), Answer::Unknown) | (Request::Attach(..), Answer::Refused) => {
                self.clients[client].lease = None;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn key_answered(&mut self, client: usize, key: String, effect: Effect, call: u64, answer: Answer) {
        let (seen, answer) = match answer {
            Answer::Key { seen, revision } => {
                let wrote = match effect {
                    Effect::Write(Some(value)) => Some(value),
                    Effect::Swap { expected, new } if seen == expected => Some(new),
                    _ => None,
                };
                if let Some(value) = wrote {
                    self.acknowledged.push((key.clone(), value, revision));
                }
                let known = &mut self.clients[client].known;
                match wrote.or(seen.filter(|_| effect != Effect::Write(None))) {
                    Some(value) => known.insert(key.clone(), value),
                    None => known.remove(&key),
                };
                (Some(seen), Some(self.moments))
            }
            Answer::Unknown => (None, None),
            Answer::Refused | Answer::Done | Answer::Lease(_) => return,
        };
        self.history.push(key, Operation { client, effect, seen, call, answer });
    }

    fn think(&mut self, client: usize) {
        let pause = match self.clients[client].kind {
            Kind::Keys => self.random.between(1, 120),
            Kind::Leases => self.random.between(50, 900),
            Kind::Admin => return,
        };
        self.queue.push(self.now + pause * MS, Event::Client(client));
    }

    /// A last read of every key through this member.
    pub(crate) fn ask_for_last_read(&mut self, client: usize, machine: usize, key: u64) -> Checked {
        self.ask(client, machine, Request::Key { key: format!("k{key}"), effect: Effect::Read })
    }

    pub(crate) fn keys() -> u64 {
        KEYS
    }
}
