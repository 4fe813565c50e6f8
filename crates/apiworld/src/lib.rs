//! A store and an API server in the test program, and kubectl for them.
//!
//! [`World`] has a runtime of its own and is for tests that are no futures. A test within a runtime, such as one of
//! `#[tokio::test]`, uses [`start`] or [`playground::Playground`], whose threads are independent of the runtime.

use std::{ops::Deref, path::Path};

use apiserver::{Options, Server};
use harness::{Kubectl, Output, TempDir};
use playground::{Member, Playground};
use tokio::runtime::{Builder, Runtime};

/// Starts a store and an API server on threads of their own, with their data in a directory of the harness.
#[track_caller]
pub fn start() -> Scratch {
    start_with(|_| {})
}

/// Starts a store and an API server whose options `change` adapts.
#[track_caller]
pub fn start_with(change: impl FnOnce(&mut Options)) -> Scratch {
    let dir = harness::tempdir();
    let playground = Playground::start_in(dir.path(), change);
    let playground = playground.unwrap_or_else(|error| panic!("failed to start the playground: {error}"));
    Scratch { playground, dir }
}

/// A playground in a directory that is removed with it.
pub struct Scratch {
    /// Stopped before its directory is removed.
    playground: Playground,
    dir: TempDir,
}

impl Scratch {
    /// The directory of the servers, where tests may put files of their own.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The kubectl of this API server. Without kubectl the test is skipped.
    #[track_caller]
    pub fn kubectl(&self) -> Option<Kubectl> {
        Kubectl::new(self.playground.kubeconfig(), self.dir())
    }
}

impl Deref for Scratch {
    type Target = Playground;

    fn deref(&self) -> &Playground {
        &self.playground
    }
}

/// A store, an API server and a runtime for both and for the test. Dropping it stops all three.
pub struct World {
    api: Option<Server>,
    member: Option<Member>,
    endpoint: String,
    /// Ends before the directory is removed.
    runtime: Runtime,
    dir: TempDir,
}

impl World {
    #[track_caller]
    pub fn start() -> World {
        World::start_with(|_| {})
    }

    /// Starts with the options of the API server that `change` adapts.
    #[track_caller]
    pub fn start_with(change: impl FnOnce(&mut Options)) -> World {
        let runtime = Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.unwrap_or_else(|error| panic!("failed to start threads: {error}"));
        let dir = harness::tempdir();
        let member = runtime.block_on(Member::start(&dir.path().join("member")));
        let member = member.unwrap_or_else(|error| panic!("failed to start a member: {error}"));
        let endpoint = member.endpoint().to_owned();
        let mut world = World { api: None, member: Some(member), endpoint, runtime, dir };
        world.api = Some(world.start_api("api", change));
        world
    }

    /// A second API server on the same store. The test stops or drops it within the runtime, before the world.
    #[track_caller]
    pub fn another(&self) -> Server {
        self.another_with(|_| {})
    }

    #[track_caller]
    pub fn another_with(&self, change: impl FnOnce(&mut Options)) -> Server {
        self.start_api("other", change)
    }

    #[track_caller]
    fn start_api(&self, dir: &str, change: impl FnOnce(&mut Options)) -> Server {
        let mut options = Options::new(vec![self.endpoint.clone()], self.dir().join(dir));
        change(&mut options);
        let api = self.run(Server::start(options));
        api.unwrap_or_else(|error| panic!("failed to start an API server: {error}"))
    }

    #[track_caller]
    pub fn api(&self) -> &Server {
        self.api.as_ref().unwrap_or_else(|| panic!("the API server runs until the world is dropped"))
    }

    /// The `host:port` of the store.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub fn kubeconfig(&self) -> &Path {
        self.api().kubeconfig()
    }

    /// The directory of the servers, where tests may put files of their own.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Runs kubectl, which the test has found before by [`harness::kubectl`].
    #[track_caller]
    pub fn kubectl(&self, args: &[&str]) -> Output {
        self.kubectl_on(self.api()).run(args)
    }

    /// Runs kubectl with `input`, for `-f -`.
    #[track_caller]
    pub fn kubectl_with(&self, args: &[&str], input: &str) -> Output {
        self.kubectl_on(self.api()).run_with(args, input)
    }

    /// Runs `kubectl wait` with the limit that all waits share.
    #[track_caller]
    pub fn kubectl_wait(&self, args: &[&str]) -> Output {
        self.kubectl_on(self.api()).wait(args)
    }

    /// Runs `kubectl delete`, which waits until the objects are gone, with the limit that all waits share.
    #[track_caller]
    pub fn kubectl_delete(&self, args: &[&str]) -> Output {
        self.kubectl_on(self.api()).delete(args)
    }

    /// The kubectl of any API server on this store.
    #[track_caller]
    pub fn kubectl_on(&self, api: &Server) -> Kubectl {
        let kubectl = Kubectl::new(api.kubeconfig(), self.dir());
        kubectl.unwrap_or_else(|| panic!("a test asks harness::kubectl before it runs kubectl"))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let (api, member) = (self.api.take(), self.member.take());
        self.runtime.block_on(async {
            drop(api);
            if let Some(member) = member {
                member.stop().await;
            }
        });
    }
}
