//! The examples as processes that are started again, as a cluster would.
#![allow(dead_code, reason = "each test file uses a part")]

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

pub fn example(name: &str) -> PathBuf {
    let mut dir = std::env::current_exe().unwrap();
    dir.pop();
    dir.pop();
    let path = dir.join("examples").join(name);
    assert!(path.exists(), "{} is built by cargo test -p accessor", path.display());
    path
}

/// An operator that is started again whenever it leaves, as a Deployment would; and all that it said.
pub struct Operator {
    pub said: Arc<Mutex<Vec<String>>>,
    child: Arc<Mutex<Option<Child>>>,
}

impl Operator {
    pub fn start(name: &'static str, version: &'static str, kubeconfig: PathBuf) -> Operator {
        let operator = Operator { said: Arc::default(), child: Arc::default() };
        let (said, slot) = (operator.said.clone(), operator.child.clone());
        *slot.lock().unwrap() = Some(spawn(name, version, &kubeconfig));
        std::thread::spawn(move || {
            loop {
                let out = slot.lock().unwrap().as_mut().and_then(|child| child.stdout.take());
                let Some(out) = out else { return };
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    said.lock().unwrap().push(line);
                }
                let mut slot = slot.lock().unwrap();
                let Some(mut child) = slot.take() else { return };
                let status = child.wait().unwrap();
                said.lock().unwrap().push(format!("exit {:?}", status.code()));
                *slot = Some(spawn(name, version, &kubeconfig));
            }
        });
        operator
    }

    pub async fn says(&self, want: &[&str]) {
        for _ in 0..300 {
            if *self.said.lock().unwrap() == want {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("want {want:?}, got {:?}", self.said.lock().unwrap());
    }
}

fn spawn(name: &str, version: &str, kubeconfig: &PathBuf) -> Child {
    Command::new(example(name))
        // A container that starts anew stays in its pod.
        .env("POD_NAME", format!("{name}-{version}"))
        .env("KUBECONFIG", kubeconfig)
        .env("OPERATOR_IMAGE_VERSION", version)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

impl Operator {
    /// `STOP` or `CONT`.
    pub fn signal(&self, signal: &str) {
        let id = self.child.lock().unwrap().as_ref().map(|child| child.id().to_string()).expect("it runs");
        assert!(Command::new("kill").args([format!("-{signal}"), id]).status().unwrap().success());
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
