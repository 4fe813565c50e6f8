//! Real etcdctl and lockgatectl compared: every command line of `parity.txt` runs through both, each on a new server,
//! and must have the same output and exit code.
//!
//! Both servers are real etcd; with `LOCKGATE_BIN` set, the server of lockgatectl is that program, so that the same
//! list compares servers as well.

pub(crate) mod case;
pub(crate) mod normal;
pub(crate) mod tool;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use case::{Before, Case, End, next_second};
use harness::{ETCD, Member, Place, etcd_dir, request, until};
use normal::{Normal, is_own};
use tool::{Printed, Tool};

/// One tool and its server, which is declared before its place, so that it is dropped first.
struct Side {
    tool: PathBuf,
    server: Member,
    place: Place,
    normal: Normal,
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
    // The lowest cost, since each command line checks a password.
    compare(include_str!("parity-auth.txt"), &["--bcrypt-cost", "4"]);
}

fn compare(list: &str, flags: &[&str]) {
    let Some(dir) = etcd_dir(ETCD) else { return };
    let etcd = dir.join("etcd");
    let cases = case::parse(list);
    let mut real = Side::new(&dir.join("etcdctl"), &etcd, flags);
    let mut second = Side::new(Path::new(env!("CARGO_BIN_EXE_lockgatectl")), &second_server(&etcd), flags);
    let mut differences = Vec::new();
    for case in &cases {
        let (expected, found) = thread::scope(|scope| {
            let expected = scope.spawn(|| real.run(case));
            let found = second.run(case);
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

/// The server of lockgatectl.
pub(crate) fn second_server(etcd: &Path) -> PathBuf {
    env::var_os("LOCKGATE_BIN").map_or_else(|| etcd.to_owned(), PathBuf::from)
}

impl Side {
    fn new(tool: &Path, server: &Path, flags: &[&str]) -> Side {
        let place = Place::new(server);
        let server = place.start(&[flags, &["--unsafe-no-fsync"]].concat());
        let mut side = Side { tool: tool.to_owned(), normal: Normal::default(), server, place };
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
        self.normal.word("CLIENT", self.server.address());
        self.normal.word("PEER", self.place.peer_url().trim_start_matches("http://"));
        self.normal.word("DIR", &self.place.dir().display().to_string());
    }

    fn raw(&self, args: &[String]) -> Printed {
        Tool::start(self.command(args, &[]), "").end()
    }

    fn run(&mut self, case: &Case) -> String {
        for before in &case.before {
            assert!(matches!(before, Before::NextSecond), "{:?} has a step for clusters", case.line);
            next_second();
        }
        let args: Vec<String> = case.args.iter().map(|arg| self.normal.fill(arg)).collect();
        if !case.during.is_empty() {
            // The watches of earlier tools end some time after these were killed.
            self.wait_watches(0);
        }
        let tool = Tool::start(self.command(&args, &case.env), &case.stdin);
        if !case.during.is_empty() {
            self.wait_watches(1);
        }
        for other in &case.during {
            self.raw(other);
        }
        let printed = match &case.end {
            End::Input => tool.end(),
            End::Open => tool.end_with_input_open(),
            End::Lines(count) => {
                let what = format!("{:?} has printed {count} lines", case.line);
                tool.kill_when(&what, |stdout, stderr| lines(stdout, stderr) >= *count)
            }
            End::Text(text) => {
                let what = format!("{:?} has printed {text:?}", case.line);
                tool.kill_when(&what, |stdout, _| stdout.windows(text.len()).any(|bytes| bytes == text.as_bytes()))
            }
        };
        if let Some(name) = &case.remember {
            self.normal.remember(name, &printed.stdout);
        }
        self.normal.describe(case, &printed)
    }

    fn wait_watches(&self, count: usize) {
        let line = format!("\netcd_debugging_mvcc_watcher_total {count}\n");
        until(&format!("the server has {count} watches"), || {
            request(self.server.address(), "GET", "/metrics", &[], "").is_ok_and(|reply| reply.body.contains(&line))
        });
    }

    fn command(&self, args: &[String], vars: &[(String, String)]) -> Command {
        let mut command = Command::new(&self.tool);
        if !args.iter().any(|arg| arg.starts_with("--endpoints")) && !vars.iter().any(|var| var.0.contains("ENDPOINTS"))
        {
            command.arg(format!("--endpoints={}", self.server.address()));
        }
        command.args(args).current_dir(self.place.dir()).env_clear().env("PATH", "/usr/bin:/bin");
        command.envs(vars.iter().map(|(name, value)| (name, self.normal.fill(value))));
        command
    }
}

/// The number of complete lines that are compared.
fn lines(stdout: &[u8], stderr: &[u8]) -> usize {
    let ends = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    let stderr = String::from_utf8_lossy(stderr);
    let own = stderr.lines().filter(|line| is_own(line)).count();
    ends(stdout) + ends(stderr.as_bytes()).saturating_sub(own)
}
