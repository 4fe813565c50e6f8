//! Real etcdctl drives membership: the lines of `interop/members.txt` against three real members and three of Lockgate, whose
//! outputs and exit codes must be equal but for ids, ports and times.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
    thread,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{
    super::{
        ctl::{show_lines, split_words},
        report::pair,
        root,
        scenario::Lines,
        server::Program,
        tool,
        wait::until_ok,
    },
    Ending, Scenario, World,
    faults::pause,
    group::Group,
    member::{Host, Member},
    verdict,
};

pub(super) const SCENARIOS: &[Scenario] =
    &[Scenario { name: "etcdctl: membership as with real etcd", short: true, run: compare }];

/// Members count as healthy when they have been connected for this long.
const HEALTHY_AFTER_MS: u64 = 6000;
const EXTRA_URLS: usize = 4;
/// A learner of Lockgate is refused until its proposal of cluster features has reached the leader.
const NOT_PROPOSED: &str = "has not proposed yet";
const TRANSFER_ENDS: [&str; 2] = ["context deadline exceeded", "request timed out, leader transfer took too long"];

fn compare(world: &World, base: &Path) -> Result<Ending> {
    let path = root()?.join("interop/members.txt");
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let run = |program: &Program, name: &str| -> Result<Lines> {
        let dir = base.join(name);
        fs::create_dir_all(&dir)?;
        Session::new(world, program, &dir)?.run(&text).with_context(|| format!("against {}", program.path.display()))
    };
    let (etcd, ours) = thread::scope(|scope| {
        let etcd = scope.spawn(|| run(&world.etcd, "etcd"));
        let ours = run(&world.ours, "ours");
        (etcd.join(), ours)
    });
    let etcd = etcd.map_err(|_| anyhow::anyhow!("the run against etcd panicked"))??;
    let steps = pair(etcd, ours?);
    let different: Vec<_> = steps.iter().filter(|step| step.left != step.right).collect();
    for step in &different {
        let show = |side: &Option<String>| side.as_deref().unwrap_or("(no such step)").replace('\n', "\n          ");
        println!("DIFFERENT, {}:\n    etcd: {}\n    ours: {}", step.name, show(&step.left), show(&step.right));
    }
    if !different.is_empty() {
        bail!("{} of {} commands differ", different.len(), steps.len());
    }
    Ok(Ending::Well(format!("{} commands, none differs", steps.len())))
}

/// One cluster, and what the lines of the script may name.
struct Session<'a> {
    world: &'a World,
    group: Group,
    /// Members that the script starts, and those that give free URLs.
    extra: Vec<Member>,
    names: BTreeMap<String, String>,
}

impl Session<'_> {
    fn new<'a>(world: &'a World, program: &Program, base: &Path) -> Result<Session<'a>> {
        let group = Group::found(base, &[program, program, program], &[])?;
        group.move_leader(0)?;
        let extra = |n| Member::new(&format!("x{n}"), program, base, Host::default());
        let extra: Vec<Member> = (4..4 + EXTRA_URLS).map(extra).collect();
        let mut names = BTreeMap::new();
        for (n, member) in group.members.iter().chain(&extra).enumerate() {
            names.insert(format!("$P{}", n + 1), member.peer_url());
            names.insert(format!("$EP{}", n + 1), member.endpoint());
        }
        for n in 0..group.members.len() {
            names.insert(format!("$M{}", n + 1), format!("{:x}", group.id(n)?));
        }
        names.insert("$ALL".to_owned(), group.endpoints().join(","));
        names.insert("$NEWEP".to_owned(), extra[0].endpoint());
        pause(HEALTHY_AFTER_MS);
        Ok(Session { world, group, extra, names })
    }

    fn run(mut self, text: &str) -> Result<Lines> {
        let mut lines = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            match line.strip_prefix('@') {
                Some(order) => self.obey(order).with_context(|| format!("at {line:?}"))?,
                None => lines.push((line.to_owned(), self.execute(line)?)),
            }
        }
        verdict::check_logs(&self.group)?;
        Ok(lines)
    }

    fn obey(&mut self, order: &str) -> Result<()> {
        let words: Vec<&str> = order.split_whitespace().collect();
        match words[..] {
            ["settled"] => until_ok("the members are settled", || self.settled())?,
            ["start", name, n] => {
                let n: usize = n.parse::<usize>()?.checked_sub(4).context("the first three run already")?;
                let member = self.extra.get_mut(n).context("there is no such URL")?;
                member.name = name.to_owned();
                let initial = format!("{},{}", self.group.initial(), member.entry());
                member.start(&initial, "existing", &[]);
            }
            ["stop", name] => {
                let member = self.extra.iter_mut().find(|member| member.name == name);
                member.context("it was not started")?.kill();
            }
            _ => bail!("write @settled, @start NAME N or @stop NAME"),
        }
        Ok(())
    }

    /// Fails unless all listed members that run are published, have a storage version, and agree on leader, term and
    /// applied entries.
    fn settled(&self) -> Result<()> {
        let list = self.group.members[0].ask("/v3/cluster/member/list", &json!({}))?;
        let mut states = BTreeSet::new();
        for listed in list["members"].as_array().into_iter().flatten() {
            let mut members = self.group.members.iter().chain(&self.extra).filter(|member| member.running());
            let Some(member) = members.find(|member| listed["peerURLs"][0] == member.peer_url()) else { continue };
            ensure!(listed["clientURLs"][0].is_string(), "{} is not published", member.name);
            let status = member.ask("/v3/maintenance/status", &json!({}))?;
            // A joined etcd writes its storage version seconds after it serves.
            let storage_version = status["storageVersion"].as_str().unwrap_or_default();
            ensure!(!storage_version.is_empty(), "{} has no storage version yet", member.name);
            states.insert(["leader", "raftTerm", "raftAppliedIndex"].map(|field| status[field].to_string()));
        }
        ensure!(states.len() == 1, "the members have the leaders, terms and applied entries {states:?}");
        Ok(())
    }

    fn execute(&mut self, line: &str) -> Result<String> {
        // Longest first, as $EP1 begins like $E.
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let fill = |word: &String| names.iter().fold(word.clone(), |word, (name, value)| word.replace(*name, value));
        let words: Vec<String> = split_words(line)?.iter().map(fill).collect();
        let (code, stdout, stderr) = until_ok("the command is not refused for want of a proposal", || {
            let mut command = Command::new(&self.world.etcdctl);
            command.args(&words).env_clear().env("ETCDCTL_ENDPOINTS", &self.names["$EP1"]);
            let output = tool::output(command)?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
            ensure!(!stderr.contains(NOT_PROPOSED), "{stderr}");
            Ok((output.status.code(), stdout, stderr))
        })?;
        if let Some(id) = stdout.strip_prefix("Member ").and_then(|rest| rest.split_once(" added")) {
            self.names.insert("$NEW".to_owned(), id.0.trim().to_owned());
        }
        let code = code.map_or("a signal".to_owned(), |code| code.to_string());
        let mut complaint = stderr.lines().find(|line| !line.starts_with('{')).unwrap_or_default();
        // Two clocks of the server end a transfer to a member that does not run; which is first differs between two runs
        // of real etcd as well.
        if line.starts_with("move-leader") && TRANSFER_ENDS.iter().any(|end| complaint.ends_with(end)) {
            complaint = "Error: the transfer took too long";
        }
        Ok(format!("exit {code}\n{}{}", self.plain(line, &stdout), self.plain(line, complaint)))
    }

    /// Without what differs by nature; lines and lists in order, as members are listed by their ids.
    fn plain(&self, command: &str, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.names {
            text = text.replace(value.as_str(), &format!("<{}>", name.trim_start_matches('$')));
        }
        let shown = show_lines(&text, "<none>");
        let mut lines: Vec<String> = shown.lines().filter(|line| !is_frame(line)).map(sorted).collect();
        if command.starts_with("endpoint status") {
            lines = lines.iter().map(|line| columns(line)).collect();
        }
        lines.sort();
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Lists inside a line in an order that does not depend on ids.
fn sorted(line: &str) -> String {
    if let Ok(mut value) = serde_json::from_str::<Value>(line) {
        settle_json(&mut value);
        return value.to_string();
    }
    let Some((name, list)) = line.split_once("ETCD_INITIAL_CLUSTER=") else { return line.to_owned() };
    let mut members: Vec<&str> = list.trim_matches('"').split(',').collect();
    members.sort_unstable();
    format!("{name}ETCD_INITIAL_CLUSTER={}", members.join(","))
}

fn settle_json(value: &mut Value) {
    match value {
        Value::Array(array) => {
            array.iter_mut().for_each(settle_json);
            array.sort_by_key(Value::to_string);
        }
        Value::Object(object) => {
            // How many elections it took is chance.
            object.remove("raft_term");
            object.values_mut().for_each(settle_json);
        }
        _ => {}
    }
}

/// Sizes, versions, terms and indexes in a member's status are the server's own.
fn columns(line: &str) -> String {
    let number =
        |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) && !word.contains(|c: char| c.is_alphabetic());
    let unit = |word: &str| matches!(word.trim_end_matches(','), "B" | "kB" | "MB");
    let words: Vec<&str> = line.split_whitespace().filter(|word| !unit(word)).collect();
    words.iter().map(|word| if number(word) { "#" } else { word }).collect::<Vec<_>>().join(" ")
}

/// The frame of a table, whose widths follow from what is in it.
fn is_frame(line: &str) -> bool {
    line.starts_with(['┌', '├', '└', '+'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_depends_on_ids_is_put_in_order() {
        assert_eq!(sorted("ETCD_INITIAL_CLUSTER=\"b=2,a=1\""), "ETCD_INITIAL_CLUSTER=a=1,b=2");
        assert_eq!(sorted("[{\"b\":1},{\"a\":1}]"), "[{\"a\":1},{\"b\":1}]");
        assert_eq!(columns("| <EP1> | 3.7.3 |  20 kB | 34% | true |"), "| <EP1> | # | # | # | true |");
        assert_eq!(columns("<EP1>, 3.7.3, 20 kB, true"), "<EP1>, # # true");
    }
}
