//! Controllers as tasks of a test.

use std::{path::Path, time::Duration};

use featureset::GatesFile;
use tokio::{sync::oneshot, task::JoinHandle};

/// A controller of one version, which runs until it is stopped.
pub(crate) struct Controller {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Controller {
    /// Starts a controller with the text of its `gates.toml`.
    pub(crate) fn start(gates: &str, version: &str, kubeconfig: &Path) -> Controller {
        let mut options = operator::Options::new(&GatesFile::parse(gates).unwrap(), version, None).unwrap();
        options.kubeconfig = Some(kubeconfig.to_owned());
        options.timing.lease = Duration::from_secs(3);
        options.timing.give_up = Duration::from_secs(2);
        options.timing.retry = Duration::from_millis(300);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move { operator::run(options, async { drop(stopped.await) }).await.unwrap() });
        Controller { stop, task }
    }

    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap();
    }
}
