//! An operator that starts anew when a gate it asks for changes: the simplest way to be right.
//!
//!     OPERATOR_IMAGE_VERSION=1.4.0 cargo run -p accessor --example restarts
//!
//! It leaves with code 0 after a change; whoever runs it (a Deployment, systemd, a shell loop) starts it again.

use std::{error::Error, time::Duration};

use accessor::{Gates, Kube, Leave};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let version = std::env::var("OPERATOR_IMAGE_VERSION").unwrap_or_default();
    // A pod keeps its name when its program starts anew, so its old acknowledgement does not linger.
    let instance = std::env::var("POD_NAME").unwrap_or_else(|_| std::process::id().to_string());
    let leave = Leave {
        jitter_max: Duration::from_millis(200),
        last: Some(Box::new(|| Box::pin(async { println!("leaving: a gate has changed") }))),
        ..Leave::default()
    };
    let gates = Gates::builder(&version)
        .need(["FastPath"])
        .acknowledge("restarts", &instance)
        .leave(leave)
        .start(Kube::connect(None).await?)?;
    let snapshot = gates.ready(Duration::from_secs(60)).await?;
    // Read once; what is built from it does not change while the process lives.
    if snapshot.is_enabled("FastPath") {
        println!("version {}: the fast path", snapshot.row.version)
    } else {
        println!("version {}: the slow path", snapshot.row.version)
    }
    std::future::pending().await
}
