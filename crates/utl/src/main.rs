//! `lockgateutl`: works on the files of a stopped etcd or lockgate, with etcdutl's flags, outputs and exit codes.

mod app;
mod defrag;
mod failure;
mod hashkv;
mod log;
mod migrate;
mod peer_url;
mod print;
mod progress;
mod restore;
mod schema;
mod status;
mod survey;
mod v2_store;
mod version;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Err(error) = failpoint::setup_from_env() {
        eprintln!("Error: {error}");
        return ExitCode::FAILURE;
    }
    let args: Vec<_> = std::env::args_os().collect();
    match app::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            ExitCode::from(failure.code)
        }
    }
}
