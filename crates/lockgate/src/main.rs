//! The lockgate server.

mod api_command;
mod follow_command;
mod ofrep_command;
mod operator_command;
mod signal;
mod small_pages;

use std::{process::ExitCode, time::Duration};

use server::{
    RunError, STOP_MAX, Server,
    config::{Config, Parsed, version_text},
    logging,
};
use signal::StopSignal;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = api_command::run(&args) {
        return code;
    }
    let env: Vec<(String, String)> = std::env::vars().collect();
    let config = match Config::from_args(&args, &env) {
        Ok(Parsed::Run(config)) => *config,
        Ok(Parsed::Help(text)) => {
            print!("{text}{}", api_command::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(Parsed::Version) => {
            print!("{}", version_text(option_env!("LOCKGATE_GIT_SHA")));
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("lockgate: {error}");
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    if let Err(error) = logging::init(&config) {
        eprintln!("lockgate: {error}");
        return ExitCode::FAILURE;
    }
    for notice in &config.notices {
        notice.log();
    }
    if let Err(error) = failpoint::setup_from_env() {
        eprintln!("lockgate: {error}");
        return ExitCode::FAILURE;
    }
    if let Some(address) = failpoint::http_address() {
        tracing::info!(kind = "failpoint", %address, "listening");
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("lockgate: failed to start threads: {error}");
            return ExitCode::FAILURE;
        }
    };
    let end = runtime.block_on(run(config));
    // Blocking work that hangs on a client must not hold up the end.
    runtime.shutdown_timeout(Duration::from_millis(200));
    match end {
        End::Code(code) => code,
        End::Stopped(signal) => signal.die(),
    }
}

enum End {
    Code(ExitCode),
    /// All is closed, as a signal asked.
    Stopped(StopSignal),
}

async fn run(config: Config) -> End {
    let server = match Server::start(config).await {
        Ok(server) => server,
        Err(error) => {
            fail(&error);
            return End::Code(ExitCode::FAILURE);
        }
    };
    if let Some(hint) = first_steps(server.config()) {
        eprint!("{hint}");
    }
    tokio::select! {
        signal = StopSignal::wait() => {
            tracing::info!(signal = signal.name(), "received signal; shutting down");
            if tokio::time::timeout(STOP_MAX, server.stop()).await.is_err() {
                tracing::warn!("gave up waiting for an orderly end");
                return End::Code(ExitCode::FAILURE);
            }
            End::Stopped(signal)
        }
        why = server.failed() => {
            eprintln!("lockgate: {why}");
            // As etcd: nothing is wrong with a member that was sent away, and whoever restarts failed ones should not.
            End::Code(if server.node().was_removed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

fn fail(error: &RunError) {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    tracing::error!(error = %text, "failed to start");
    eprintln!("lockgate: {text}");
}

/// The first commands to try, for a person at a terminal.
fn first_steps(config: &Config) -> Option<String> {
    use std::io::IsTerminal;
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let url = config.advertise_client_urls.first()?;
    let tool = tool();
    let unoptimized = if cfg!(debug_assertions) {
        "This is an unoptimized build: to measure or to deploy, build with `cargo build --release --workspace`.\n"
    } else {
        ""
    };
    Some(format!(
        "\nLockgate is ready. Data is in {}; clients connect to {url}.\n{unoptimized}\
         Try, in another terminal:\n\n  \
           {tool} put greeting hello\n  \
           {tool} get greeting\n  \
           {tool} watch --prefix '' \n\n\
         Any etcd client works too. Ctrl-C stops the server.\n\n",
        config.data_dir.display()
    ))
}

/// The command that runs `lockgatectl`: through cargo if cargo started this program.
fn tool() -> &'static str {
    match std::env::var_os("CARGO") {
        Some(_) if cfg!(debug_assertions) => "cargo run -p ctl --",
        Some(_) => "cargo run --release -p ctl --",
        None => "lockgatectl",
    }
}
