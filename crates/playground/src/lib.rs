//! A store and an API server in this process, for tests of controllers. They start in about a tenth
//! of a second.
//!
//! ```
//! let playground = playground::Playground::start()?;
//! println!("export KUBECONFIG={}", playground.kubeconfig().display());
//! # Ok::<(), playground::StartError>(())
//! ```
//!
//! A [`Playground`] has its own threads, so it works with any async runtime and without one.
//! Dropping it stops both and removes the temporary directory, if it made one. [`Member`] is the
//! store alone.
#![warn(missing_docs)]

mod member;

use std::{
    io,
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
};

use tempfile::TempDir;
use tokio::{runtime::Runtime, sync::oneshot};

pub use apiserver::Options;
pub use member::{Member, MemberError};

/// Why [`Playground::start`] or [`Playground::start_in`] failed. Nothing keeps running after an
/// error.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The temporary directory for the data could not be created. Only from [`Playground::start`].
    #[error("failed to make a temporary directory")]
    Directory(#[source] io::Error),
    /// The async runtime or the thread that drives it could not be created.
    #[error("failed to start threads")]
    Threads(#[source] io::Error),
    /// The store did not start.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// The store started, but the API server did not. The store has been stopped again.
    #[error(transparent)]
    Api(#[from] apiserver::StartError),
    /// The thread that starts the store and the API server ended without a result: it panicked.
    #[error("the thread that was to start both ended")]
    Ended,
}

/// A running store and API server. Both stop when the value is dropped.
pub struct Playground {
    ready: Ready,
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Removed after the thread has ended.
    _own_dir: Option<TempDir>,
}

/// The addresses under which clients reach the store and the API server.
struct Ready {
    url: String,
    kubeconfig: PathBuf,
    store: String,
}

impl Playground {
    /// Starts an empty store in a temporary directory, which is removed on drop. Blocks until the
    /// API server answers requests.
    pub fn start() -> Result<Playground, StartError> {
        let dir = tempfile::tempdir().map_err(StartError::Directory)?;
        let mut playground = Playground::start_in(dir.path(), |_| {})?;
        playground._own_dir = Some(dir);
        Ok(playground)
    }

    /// Starts with the data that an earlier playground left in `dir`; all data is kept there.
    /// `change` overrides the default options, such as the address to listen on or the features of
    /// the API server. Blocks until the API server answers requests.
    pub fn start_in(dir: &Path, change: impl FnOnce(&mut Options)) -> Result<Playground, StartError> {
        let mut options = Options::new(Vec::new(), dir);
        change(&mut options);
        let runtime = Runtime::new().map_err(StartError::Threads)?;
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let dir = dir.join("member");
        let body = move || runtime.block_on(run(&dir, options, |ready| drop(tell.send(ready)), stopped));
        let thread = thread::Builder::new().name("playground".into()).spawn(body).map_err(StartError::Threads)?;
        let ready = told.recv().map_err(|_| StartError::Ended)??;
        Ok(Playground { ready, stop: Some(stop), thread: Some(thread), _own_dir: None })
    }

    /// The base URL of the API server, the one that the kubeconfig names.
    pub fn url(&self) -> &str {
        &self.ready.url
    }

    /// Path of a kubeconfig with administrator rights.
    pub fn kubeconfig(&self) -> &Path {
        &self.ready.kubeconfig
    }

    /// The `host:port` that etcd clients connect to.
    pub fn store(&self) -> &str {
        &self.ready.store
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the playground ended by a panic");
        }
    }
}

async fn run(
    dir: &Path,
    options: Options,
    tell: impl FnOnce(Result<Ready, StartError>),
    stopped: oneshot::Receiver<()>,
) {
    match start(dir, options).await {
        Err(error) => tell(Err(error)),
        Ok((member, api)) => {
            let (url, kubeconfig) = (api.url(), api.kubeconfig().to_owned());
            tell(Ok(Ready { url, kubeconfig, store: member.endpoint().to_owned() }));
            // An error means that the `Playground` was dropped: stop then, too.
            let _ = stopped.await;
            api.stop().await;
            member.stop().await;
        }
    }
}

async fn start(dir: &Path, options: Options) -> Result<(Member, apiserver::Server), StartError> {
    let member = Member::start(dir).await?;
    let options = Options { etcd_servers: vec![member.endpoint().to_owned()], ..options };
    match apiserver::Server::start(options).await {
        Ok(api) => Ok((member, api)),
        Err(error) => {
            member.stop().await;
            Err(error.into())
        }
    }
}
