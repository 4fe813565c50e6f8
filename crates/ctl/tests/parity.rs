//! Real etcdctl and lockgatectl side by side: every command line of `parity.txt` runs through both, each against a
//! fresh server of its own, and must print the same and end the same.
//!
//! Both servers are real etcd; with `LOCKGATE_BIN` set, the second side's server is that program, so that the same
//! list compares servers as well.

use crate::support;

pub mod case;
pub mod normal;

use std::{
    env,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use case::Case;
use normal::Normal;
use support::{Server, peer};

const VERSION: &str = "3.7.3";

/// One tool and its server.
struct Side {
    tool: PathBuf,
    server: Server,
    normal: Normal,
}

struct Output {
    stdout: Vec<u8>,
    stderr: String,
    code: Option<i32>,
}

#[test]
fn command_lines_print_the_same_and_end_the_same() {
    compare(include_str!("parity.txt"), &[]);
}

#[test]
fn alarms_look_the_same() {
    compare(include_str!("parity-nospace.txt"), &["--quota-backend-bytes", "100000"]);
}

#[test]
fn users_and_roles_look_the_same() {
    // Passwords are to be checked fast here.
    compare(include_str!("parity-auth.txt"), &["--bcrypt-cost", "4"]);
}

fn compare(list: &str, flags: &[&str]) {
    let (Some(etcd), Some(etcdctl)) = (peer(VERSION, "etcd"), peer(VERSION, "etcdctl")) else { return };
    let second = env::var_os("LOCKGATE_BIN").map_or_else(|| etcd.clone(), PathBuf::from);
    let cases = case::parse(list);
    let mut real = Side::new(&etcdctl, &etcd, flags);
    let mut ours = Side::new(Path::new(env!("CARGO_BIN_EXE_lockgatectl")), &second, flags);
    let mut differences = Vec::new();
    for case in &cases {
        let (expected, found) = thread::scope(|scope| {
            let expected = scope.spawn(|| real.run(case));
            let found = ours.run(case);
            (expected.join().unwrap(), found)
        });
        if expected != found {
            differences.push(format!("{}:\n--- etcdctl\n{expected}--- lockgatectl\n{found}", case.line));
        }
    }
    let (bad, all) = (differences.len(), cases.len());
    assert!(differences.is_empty(), "{bad} of {all} command lines differ:\n\n{}", differences.join("\n"));
    println!("{all} command lines agree");
}

impl Side {
    fn new(tool: &Path, server: &Path, flags: &[&str]) -> Side {
        let server = Server::start_with(server, flags);
        let mut side = Side { tool: tool.to_owned(), normal: Normal::default(), server };
        side.learn_ids();
        side
    }

    /// Ids and addresses differ between the sides, so they are replaced by names.
    fn learn_ids(&mut self) {
        let status = self.raw(&["endpoint".into(), "status".into(), "-w".into(), "json".into()]);
        let text = String::from_utf8(status.stdout).unwrap();
        let number = |name: &str| -> u64 {
            let rest = text.split(&format!("\"{name}\":")).nth(1).unwrap_or_else(|| panic!("no {name} in {text}"));
            rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
        };
        let version = text.split("\"version\":\"").nth(1).and_then(|rest| rest.split('"').next());
        self.normal.version(version.unwrap_or_else(|| panic!("no version in {text}")));
        self.normal.id("CLUSTER", number("cluster_id"));
        self.normal.id("MEMBER", number("member_id"));
        self.normal.word("CLIENT", &self.server.client);
        self.normal.word("PEER", &self.server.peer);
        self.normal.word("DIR", &self.server.path().display().to_string());
    }

    fn raw(&self, args: &[String]) -> Output {
        self.spawn(args, &[]).wait_with_output().map(Output::from).unwrap()
    }

    fn run(&mut self, case: &Case) -> String {
        let args: Vec<String> = case.args.iter().map(|arg| self.normal.fill(arg)).collect();
        let mut child = self.spawn(&args, &case.env);
        let mut stdin = child.stdin.take().unwrap();
        // A tool that does not read its input may be gone already.
        let _ = stdin.write_all(case.stdin.as_bytes());
        let output = match case.kill_when_silent {
            None => {
                drop(stdin);
                child.wait_with_output().map(Output::from).unwrap()
            }
            Some(silence) => {
                let (out, err) = (Capture::start(child.stdout.take()), Capture::start(child.stderr.take()));
                if !case.during.is_empty() {
                    thread::sleep(Duration::from_secs(1)); // until it watches
                }
                for other in &case.during {
                    self.raw(other);
                }
                wait_silent(&out, &err, silence);
                let code = end(&mut child);
                drop(stdin);
                Output { stdout: out.bytes(), stderr: text(err.bytes()), code }
            }
        };
        if let Some(name) = &case.remember {
            self.normal.remember(name, &output.stdout);
        }
        self.describe(case, &output)
    }

    fn spawn(&self, args: &[String], vars: &[(String, String)]) -> Child {
        let mut command = Command::new(&self.tool);
        if !args.iter().any(|arg| arg.starts_with("--endpoints")) && !vars.iter().any(|var| var.0.contains("ENDPOINTS"))
        {
            command.arg(format!("--endpoints={}", self.server.client));
        }
        command.args(args).current_dir(self.server.path()).env_clear().env("PATH", "/usr/bin:/bin");
        command.envs(vars.iter().map(|(name, value)| (name, self.normal.fill(value))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn describe(&self, case: &Case, output: &Output) -> String {
        let stdout = if case.ignore_stdout { String::new() } else { self.normal.stdout(case, &output.stdout) };
        let stderr = self.normal.stderr(case, &output.stderr);
        let code = output.code.map_or("killed".to_owned(), |code| code.to_string());
        format!("stdout:\n{stdout}stderr:\n{stderr}exit: {code}\n")
    }
}

impl From<std::process::Output> for Output {
    fn from(output: std::process::Output) -> Output {
        Output { stdout: output.stdout, stderr: text(output.stderr), code: output.status.code() }
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a tool prints while it runs.
struct Capture(Arc<Mutex<Vec<u8>>>);

impl Capture {
    fn start(stream: Option<impl Read + Send + 'static>) -> Capture {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (sink, mut stream) = (Arc::clone(&bytes), stream.unwrap());
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Capture(bytes)
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

/// Waits for the first output, then until none has come for a while.
fn wait_silent(out: &Capture, err: &Capture, silence: Duration) {
    let size = || out.bytes().len() + err.bytes().len();
    let deadline = Instant::now() + Duration::from_secs(10);
    let (mut last, mut since) = (0, Instant::now());
    while Instant::now() < deadline && (last == 0 || since.elapsed() < silence) {
        thread::sleep(Duration::from_millis(20));
        if size() != last {
            (last, since) = (size(), Instant::now());
        }
    }
}

/// The exit code if the tool ended by itself; `None` if it had to be killed.
fn end(child: &mut Child) -> Option<i32> {
    match child.try_wait().unwrap() {
        Some(status) => status.code(),
        None => {
            let _ = child.kill();
            child.wait().unwrap();
            None
        }
    }
}
