//! An operator that switches while it runs: a hook takes the change, and asks for a restart where it cannot.
//!
//!     OPERATOR_IMAGE_VERSION=1.4.0 cargo run -p accessor --example hook

use std::{error::Error, time::Duration};

use accessor::{Change, Decision, Gates, Kube};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let version = std::env::var("OPERATOR_IMAGE_VERSION").unwrap_or_default();
    let instance = std::process::id().to_string();
    let gates = Gates::builder(&version)
        .need(["FastPath"])
        .acknowledge("hook", &instance)
        .hook(take)
        .start(Kube::connect(None).await?)?;
    let snapshot = gates.ready(Duration::from_secs(60)).await?;
    println!("version {}: fast path {}", snapshot.row.version, snapshot.is_enabled("FastPath"));
    std::future::pending().await
}

/// Faster is possible at any time; slower again needs a fresh start.
fn take(change: &Change) -> Decision {
    println!("switched: fast path {}", change.current.is_enabled("FastPath"));
    if change.turned_off.contains("FastPath") { Decision::Restart } else { Decision::Handled }
}
