//! The etcdctl scenario: command lines from `interop/etcdctl.txt` through real etcdctl.
//!
//! One command a line, words as in a shell (`'…'`, `"…"`, `\n` inside the latter). Lines that begin with `< ` are its
//! input. A command after `~ ` would not end by itself: it is stopped once it has nothing more to say. `$LEASE` is the
//! lease granted last, `$DIR` a directory of the run.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::{normal, root, scenario::Lines};

const QUIET: Duration = Duration::from_millis(700);
const QUIET_WAIT_MAX: Duration = Duration::from_secs(5);

pub fn run(etcdctl: &Path, endpoint: &str) -> Result<Lines> {
    let path = root()?.join("interop/etcdctl.txt");
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let dir = tempfile::tempdir()?;
    let mut lease = String::new();
    let mut lines = Vec::new();
    for command in parse(&text)? {
        let fill = |word: &String| word.replace("$LEASE", &lease).replace("$DIR", &dir.path().to_string_lossy());
        let words: Vec<String> = command.words.iter().map(fill).collect();
        let outcome = execute(etcdctl, endpoint, &words, &command)?;
        if let Some(id) = outcome.stdout.strip_prefix("lease ").and_then(|rest| rest.split_once(" granted")) {
            id.0.clone_into(&mut lease);
        }
        let dir_name = dir.path().to_string_lossy().into_owned();
        lines.push((command.line.clone(), outcome.show(endpoint).replace(&dir_name, "$DIR")));
    }
    Ok(lines)
}

#[derive(Debug, PartialEq, Eq)]
struct CommandLine {
    line: String,
    words: Vec<String>,
    input: String,
    endless: bool,
}

fn parse(text: &str) -> Result<Vec<CommandLine>> {
    let mut commands: Vec<CommandLine> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        if let Some(input) = line.strip_prefix("< ").or_else(|| line.strip_prefix('<')) {
            let command = commands.last_mut().context("input before the first command")?;
            command.input.push_str(&format!("{input}\n"));
            continue;
        }
        let (endless, rest) = line.strip_prefix("~ ").map_or((false, line), |rest| (true, rest));
        let words = split_words(rest).with_context(|| format!("in {line:?}"))?;
        commands.push(CommandLine { line: line.to_owned(), words, input: String::new(), endless });
    }
    Ok(commands)
}

pub fn split_words(line: &str) -> Result<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some('"'), '\\') => {
                let escaped = chars.next().context("a backslash at the end")?;
                word.get_or_insert_default().push(if escaped == 'n' { '\n' } else { escaped });
            }
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        bail!("a quote is not closed");
    }
    words.extend(word);
    Ok(words)
}

struct Outcome {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn execute(etcdctl: &Path, endpoint: &str, words: &[String], command: &CommandLine) -> Result<Outcome> {
    let mut out = tempfile::tempfile()?;
    let mut child = Command::new(etcdctl)
        .args(words)
        .env_clear()
        .env("ETCDCTL_ENDPOINTS", endpoint)
        .stdin(Stdio::piped())
        .stdout(out.try_clone()?)
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("failed to run {}", etcdctl.display()))?;
    let mut stdin = child.stdin.take();
    if let Some(stdin) = &mut stdin {
        // A command that does not read its input may be gone by now.
        let _ = stdin.write_all(command.input.as_bytes());
    }
    if command.endless {
        wait_until_quiet(&out)?;
        child.kill()?;
    }
    drop(stdin);
    let output = child.wait_with_output()?;
    let mut stdout = Vec::new();
    out.seek(SeekFrom::Start(0))?;
    out.read_to_end(&mut stdout)?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    // What a command complains about while it is being stopped is chance.
    let (code, stderr) = if command.endless { (None, Vec::new()) } else { (output.status.code(), output.stderr) };
    Ok(Outcome { code, stdout: text(stdout), stderr: text(stderr) })
}

/// Until something was printed and then nothing more.
fn wait_until_quiet(out: &File) -> Result<()> {
    let start = Instant::now();
    let (mut seen, mut since) = (0, start);
    while start.elapsed() < QUIET_WAIT_MAX && (seen == 0 || since.elapsed() < QUIET) {
        thread::sleep(QUIET / 10);
        let length = out.metadata()?.len();
        if length != seen {
            (seen, since) = (length, Instant::now());
        }
    }
    Ok(())
}

impl Outcome {
    fn show(&self, endpoint: &str) -> String {
        let code = self.code.map_or("stopped".to_owned(), |code| format!("exit {code}"));
        let stdout = show_lines(&self.stdout, endpoint);
        // The first line of complaint; the client's own log lines carry times.
        let complaint = self.stderr.lines().find(|line| !line.starts_with('{')).unwrap_or_default();
        format!("{code}\n{stdout}{}", normal::text(complaint, endpoint))
    }
}

pub fn show_lines(stdout: &str, endpoint: &str) -> String {
    let show = |line: &str| match serde_json::from_str(line) {
        Ok(value @ (serde_json::Value::Object(_) | serde_json::Value::Array(_))) => normal::json(value).to_string(),
        _ => field(line).unwrap_or_else(|| normal::text(line, endpoint)),
    };
    stdout.lines().map(|line| show(line) + "\n").collect()
}

/// A line of `-w fields`: `"Name" : value`.
fn field(line: &str) -> Option<String> {
    const BY_NATURE: [&str; 9] =
        ["ID", "Leader", "Size", "RaftIndex", "RaftAppliedIndex", "Endpoint", "URL", "StorageVersion", "RaftTerm"];
    let (name, _) = line.strip_prefix('"')?.split_once("\" : ")?;
    let server_version = name == "Version" && line.contains('.');
    (server_version || BY_NATURE.iter().any(|word| name.contains(word))).then(|| format!("\"{name}\" : …"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_in_a_shell() {
        let words = split_words(r#"put 'a b' "c\n\"d" '' e"#).expect("it splits");
        assert_eq!(words, ["put", "a b", "c\n\"d", "", "e"]);
        assert!(split_words("put 'a").is_err());
    }

    #[test]
    fn input_belongs_to_the_command_before_it() {
        let commands = parse("# why\ntxn\n< a\n<\n\n~ watch k\n").expect("it reads");
        let shape: Vec<_> = commands.iter().map(|c| (c.line.as_str(), c.input.as_str(), c.endless)).collect();
        assert_eq!(shape, [("txn", "a\n\n", false), ("~ watch k", "", true)]);
        assert!(parse("< a\n").is_err());
    }
}
