//! A sync of the log that fails ends the member: nothing is acknowledged that may not be on disk, and all that was is there again.
//!
//! Needs `cargo test -p lockgate --features failpoints --test failed_sync`; says so and passes otherwise.

mod common;

use std::process::Command;

use client::{Get, Put};
use common::{BINARY, Place};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_the_member_and_loses_nothing() {
    if !failpoint::ENABLED {
        eprintln!("SKIPPED: failpoints are not compiled in; add --features failpoints");
        return;
    }
    let place = Place::new();
    place.start(&[]).stop();
    for syncs in [10, 25, 60] {
        let mut command = Command::new(BINARY);
        command.env("GOFAIL_FAILPOINTS", format!("walBeforeSync={syncs}*off->return(\"the disk is gone\")"));
        let mut member = place.spawn_command(command);
        member.wait_ready().unwrap_or_else(|ended| panic!("{syncs}: {}", ended.log));
        let client = member.client().await;
        let mut acknowledged = 0;
        while client.put(Put::new(format!("{syncs}/{acknowledged:03}"), "v")).await.is_ok() {
            acknowledged += 1;
            assert!(acknowledged < syncs, "the sync never failed");
        }
        let ended = member.wait_end();
        assert!(!ended.status.success(), "{:?}", ended.status);
        assert!(ended.log.contains("the disk is gone"), "{}", ended.log);

        let member = place.start(&[]);
        let found = member.client().await.get(Get::prefix(format!("{syncs}/"))).await.expect("get").count;
        // The one that was not answered may be there or not.
        assert!(found == acknowledged || found == acknowledged + 1, "{found} of {acknowledged}");
        member.stop();
    }
}
