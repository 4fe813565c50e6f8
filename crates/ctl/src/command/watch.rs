//! `watch`: prints events as they happen, or runs a command for each.

use std::{env, ffi::OsString, io::BufRead, os::unix::ffi::OsStrExt};

use cli::{quote, value};
use client::{
    Canceled, Client, Watch, WatchStream,
    mvccpb::{Event, event::EventType},
    pb::WatchResponse,
};
use futures_util::StreamExt;
use tokio::process::Command;

use super::into_bytes;
use crate::{
    context::Context,
    failure::Failure,
    print::{Style, println},
    text::argify::argify,
};

/// Watches events stream on keys or prefixes
///
/// With -i, lines such as `watch --rev=3 key` and `progress` are read from standard input. The key and range end
/// can also be given as ETCDCTL_WATCH_KEY and ETCDCTL_WATCH_RANGE_END. A command after `--` runs for each event
/// and finds it in ETCD_WATCH_REVISION, ETCD_WATCH_EVENT_TYPE, ETCD_WATCH_KEY and ETCD_WATCH_VALUE.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: lockgatectl watch --prefix /jobs/ -- sh -c 'echo $ETCD_WATCH_KEY'")]
pub(crate) struct WatchArgs {
    /// Read what to watch from standard input
    #[arg(short, long)]
    interactive: bool,
    /// All keys that begin with the key
    #[arg(long)]
    prefix: bool,
    /// The first revision of interest
    #[arg(long, default_value = "0", value_parser = value::int, value_name = "REVISION")]
    rev: i64,
    /// Also the key and value from before each event
    #[arg(long)]
    prev_kv: bool,
    /// Tell from time to time how far the watch is
    #[arg(long)]
    progress_notify: bool,
    /// The key, the end of a range, and a command
    #[arg(value_name = "KEY [RANGE_END] [-- COMMAND]")]
    args: Vec<OsString>,
}

/// A line of interactive input.
#[derive(clap::Parser)]
#[command(no_binary_name = true)]
struct Line {
    #[command(flatten)]
    watch: WatchArgs,
}

/// What the environment says to watch.
struct Preset {
    key: OsString,
    range_end: OsString,
}

impl Preset {
    fn is_set(&self) -> bool {
        !self.key.is_empty()
    }
}

pub(crate) async fn run(context: &Context, args: WatchArgs) -> Result<(), Failure> {
    let var = |name| env::var_os(name).unwrap_or_default();
    let preset = Preset { key: var("ETCDCTL_WATCH_KEY"), range_end: var("ETCDCTL_WATCH_RANGE_END") };
    if !preset.is_set() && !preset.range_end.is_empty() {
        let end = quote(preset.range_end.as_bytes());
        return Err(Failure::bad_args(format!("ETCDCTL_WATCH_KEY is empty but got ETCDCTL_WATCH_RANGE_END={end}")));
    }
    if args.interactive {
        return interactive(context, &preset).await;
    }
    let after = env::args_os().skip_while(|arg| arg != "--").skip(1).collect();
    let separated = env::args_os().any(|arg| arg == "--");
    let (args, command) = split(args, separated.then_some(after), &preset)?;
    let (client, style) = context.open().await?;
    let watch = client.require_leader().watch(request(args)?);
    follow(watch, style, &command).await?;
    Err(Failure::interrupted("watch is canceled by the server"))
}

/// Parts the command from the keys, and adds keys from the environment.
fn split(
    mut args: WatchArgs,
    command: Option<Vec<OsString>>,
    preset: &Preset,
) -> Result<(WatchArgs, Vec<OsString>), Failure> {
    if command.as_ref().is_some_and(Vec::is_empty) {
        return Err(Failure::bad_args("bad number of arguments (found separator --, but no commands)"));
    }
    let command = command.unwrap_or_default();
    args.args.truncate(args.args.len().saturating_sub(command.len()));
    if preset.is_set() {
        if !args.args.is_empty() {
            return Err(Failure::bad_args("bad number of arguments (found conflicting environment key)"));
        }
        args.args = [&preset.key, &preset.range_end].into_iter().filter(|arg| !arg.is_empty()).cloned().collect();
    }
    Ok((args, command))
}

fn request(args: WatchArgs) -> Result<Watch, Failure> {
    let two = args.args.len() == 2;
    let mut words = args.args.into_iter().map(into_bytes);
    let Some(key) = words.next() else { return Err(Failure::bad_args("bad number of arguments")) };
    if two && args.prefix {
        return Err(Failure::bad_args("`range_end` and `--prefix` are mutually exclusive"));
    }
    let mut watch = match words.next() {
        Some(end) if two => Watch::range(key, end),
        _ if args.prefix => Watch::prefix(key),
        _ => Watch::key(key),
    };
    watch = watch.start_revision(args.rev);
    if args.prev_kv {
        watch = watch.prev_kv();
    }
    Ok(if args.progress_notify { watch.progress_notify() } else { watch })
}

async fn interactive(context: &Context, preset: &Preset) -> Result<(), Failure> {
    let (client, style) = context.open().await?;
    let client = client.require_leader();
    let (sender, mut lines) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    while let Some(line) = lines.recv().await {
        let args = argify(&line).ok_or_else(|| Failure::invalid_input("invalid syntax"))?;
        match args.first().and_then(|word| word.to_str()) {
            None => eprintln!("Invalid command: {line} (watch and progress supported)"),
            Some("watch") if args.len() < 2 && !preset.is_set() => {
                eprintln!("Invalid command {line} (command type or key is not provided)");
            }
            Some("watch") => start(&client, style, &line, args, preset)?,
            Some("progress") => client.request_progress(),
            Some(_) => eprintln!("Invalid command {line} (only support watch)"),
        }
    }
    Err(Failure::invalid_input("error reading watch request line: EOF"))
}

fn start(client: &Client, style: Style, line: &str, args: Vec<OsString>, preset: &Preset) -> Result<(), Failure> {
    let args: Vec<OsString> = args.into_iter().skip(1).collect();
    let separator = args.iter().position(|arg| arg == "--");
    let command = separator.map(|at| args[at + 1..].to_vec());
    let parsed = crate::app::parse_line::<Line>(args)
        .map_err(|error| Failure::bad_args(cli::flag::usage_text(&error, "watch", None)))?;
    let (args, command) = split(parsed.watch, command, preset)?;
    if args.args.is_empty() {
        return Err(Failure::bad_args("bad number of arguments"));
    }
    match request(args) {
        Err(failure) => eprintln!("Invalid command {line} ({})", failure.text()),
        Ok(watch) => {
            let watch = client.watch(watch);
            tokio::spawn(async move {
                if let Err(failure) = follow(watch, style, &command).await {
                    failure.tell();
                    std::process::exit(failure.code.into());
                }
            });
        }
    }
    Ok(())
}

/// Prints responses until the watch is canceled.
async fn follow(mut watch: WatchStream, style: Style, command: &[OsString]) -> Result<(), Failure> {
    while let Some(response) = watch.next().await {
        let response = response.unwrap_or_else(tell);
        if response.events.is_empty() && !response.canceled {
            println(&format!("progress notify: {}", revision(&response)))?;
        }
        style.show(&response)?;
        if let [program, args @ ..] = command {
            for event in &response.events {
                execute(program, args, event, revision(&response)).await?;
            }
        }
    }
    Ok(())
}

/// Tells why a watch has ended; of one that was refused from the start, etcdctl knows the server's words and nothing else.
fn tell(canceled: Canceled) -> WatchResponse {
    if !canceled.response.created {
        eprintln!("{canceled}");
        return canceled.response;
    }
    eprintln!("watch was canceled ({})", canceled.response.cancel_reason);
    WatchResponse { header: Some(Default::default()), canceled: true, ..Default::default() }
}

async fn execute(program: &OsString, args: &[OsString], event: &Event, revision: i64) -> Result<(), Failure> {
    let kv = event.kv.clone().unwrap_or_default();
    let kind = if event.r#type() == EventType::Delete { "DELETE" } else { "PUT" };
    let status = Command::new(program)
        .args(args)
        .env("ETCD_WATCH_REVISION", revision.to_string())
        .env("ETCD_WATCH_EVENT_TYPE", quote(kind.as_bytes()))
        .env("ETCD_WATCH_KEY", quote(&kv.key))
        .env("ETCD_WATCH_VALUE", quote(&kv.value))
        .status()
        .await;
    let problem = match status {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => match status.code() {
            Some(code) => format!("exit status {code}"),
            None => status.to_string(),
        },
        Err(error) => error.to_string(),
    };
    let words: Vec<String> = [program].into_iter().chain(args).map(|word| quote(word.as_bytes())).collect();
    eprintln!("command [{}] error ({problem})", words.join(" "));
    Err(Failure::told(1))
}

fn revision(response: &WatchResponse) -> i64 {
    response.header.map_or(0, |header| header.revision)
}
