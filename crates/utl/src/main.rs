//! `lockgateutl`: works on the files of a stopped etcd or lockgate, with etcdutl's flags, outputs and exit codes.

mod app;
mod defrag;
mod failure;
mod hashkv;
mod log;
mod peer_url;
mod print;
mod progress;
mod restore;
mod status;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    match app::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            ExitCode::from(failure.code)
        }
    }
}
