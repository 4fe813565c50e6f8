//! Several members of one cluster.

use std::{fs, path::Path, process::Command};

use super::{Member, Place};
use crate::Ended;

/// Members `m0`, `m1`, … Dropping it kills them.
#[derive(Debug)]
pub struct Group {
    /// Killed before their ports are released.
    members: Vec<Option<Member>>,
    places: Vec<Place>,
}

impl Group {
    /// Starts a new cluster and waits until all members serve.
    #[track_caller]
    pub fn start(program: &Path, count: usize, flags: &[&str]) -> Group {
        let mut places: Vec<Place> = (0..count).map(|at| Place::of_cluster(program, &format!("m{at}"))).collect();
        let cluster: Vec<String> = places.iter().map(Place::as_cluster_member).collect();
        places.iter_mut().for_each(|place| place.join(&cluster.join(",")));
        let mut group = Group { members: Vec::new(), places };
        group.start_all(flags);
        group
    }

    /// Kills the members, deletes their data and starts the same cluster again: same addresses, and so the same ids.
    #[track_caller]
    pub fn start_over(&mut self, flags: &[&str]) {
        self.members.clear();
        for place in &self.places {
            let _ = fs::remove_dir_all(place.data());
        }
        self.start_all(flags);
    }

    #[track_caller]
    fn start_all(&mut self, flags: &[&str]) {
        let spawned: Vec<Member> = self.places.iter().map(|place| place.spawn(flags)).collect();
        self.members = spawned.into_iter().map(|member| Some(member.ready())).collect();
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Reserves the ports of one more member, which does not run yet, and returns its number. The caller adds it to
    /// the cluster by its [`Place::peer_url`].
    pub fn add_place(&mut self) -> usize {
        let at = self.places.len();
        let mut place = Place::of_cluster(self.places[0].program(), &format!("m{at}"));
        let cluster: Vec<String> = self.places.iter().chain([&place]).map(Place::as_cluster_member).collect();
        place.join(&cluster.join(","));
        self.places.push(place);
        self.members.push(None);
        at
    }

    pub fn place(&self, at: usize) -> &Place {
        &self.places[at]
    }

    #[track_caller]
    pub fn member(&self, at: usize) -> &Member {
        self.members[at].as_ref().unwrap_or_else(|| panic!("member m{at} does not run"))
    }

    /// The members that run.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().flatten()
    }

    /// Another program for all members, from their next start on.
    pub fn set_program(&mut self, program: &Path) {
        self.places.iter_mut().for_each(|place| place.set_program(program));
    }

    /// Starts a member that does not run and waits until it serves.
    #[track_caller]
    pub fn start_member(&mut self, at: usize, flags: &[&str]) {
        self.members[at] = Some(self.places[at].start(flags));
    }

    /// Starts a member by a command that ends in its program and first flags, and waits until it serves.
    #[track_caller]
    pub fn start_command(&mut self, at: usize, command: Command) {
        self.members[at] = Some(self.places[at].spawn_command(command).ready());
    }

    /// Stops a member and starts it with other flags.
    #[track_caller]
    pub fn restart(&mut self, at: usize, flags: &[&str]) {
        self.stop(at);
        self.start_member(at, flags);
    }

    /// Asks a member to stop and waits until it has ended.
    #[track_caller]
    pub fn stop(&mut self, at: usize) -> Ended {
        self.take(at).stop()
    }

    /// Ends a member with SIGKILL.
    #[track_caller]
    pub fn kill(&mut self, at: usize) {
        self.take(at).kill();
    }

    /// Waits until a member ends by itself.
    #[track_caller]
    pub fn wait_end(&mut self, at: usize) -> Ended {
        self.take(at).wait_end()
    }

    #[track_caller]
    fn take(&mut self, at: usize) -> Member {
        self.members[at].take().unwrap_or_else(|| panic!("member m{at} does not run"))
    }
}
