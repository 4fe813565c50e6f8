//! `lockgatectl`: looks at and changes a running etcd cluster, with etcdctl's flags, outputs and exit codes.

mod app;
mod command;
mod context;
mod failure;
mod password;
mod print;
mod text;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    let code = match app::run(&args) {
        Ok(()) => 0,
        Err(failure) => {
            failure.tell();
            failure.code
        }
    };
    // A thread may still wait for a line on standard input; it must not hold up the end.
    std::process::exit(code.into())
}
