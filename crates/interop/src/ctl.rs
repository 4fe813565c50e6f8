//! The etcdctl scenario: command lines from `interop/etcdctl.txt` through real etcdctl.
//!
//! One command a line, words as in a shell (`'…'`, `"…"`, `\n` inside the latter). Lines that begin with `< ` are its
//! input. A command after `~N ` does not end by itself: it is stopped once it has printed N lines, and no other line follows
//! for a moment. `$LEASE` is the lease granted last, `$DIR` a directory of the run.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use super::{normal, root, scenario::Lines, wait::until_some};

/// How long more lines than expected are looked for.
const QUIET: Duration = Duration::from_millis(700);

pub(crate) fn run(etcdctl: &Path, endpoint: &str) -> Result<Lines> {
    let path = root()?.join("interop/etcdctl.txt");
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
    let dir = harness::tempdir();
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
    /// The number of lines after which a command that does not end by itself is stopped.
    endless: Option<usize>,
}

fn parse(text: &str) -> Result<Vec<CommandLine>> {
    let mut commands: Vec<CommandLine> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        if let Some(input) = line.strip_prefix("< ").or_else(|| line.strip_prefix('<')) {
            let command = commands.last_mut().context("input before the first command")?;
            command.input.push_str(&format!("{input}\n"));
            continue;
        }
        let (endless, rest) = endless(line).with_context(|| format!("in {line:?}"))?;
        let words = split_words(rest).with_context(|| format!("in {line:?}"))?;
        commands.push(CommandLine { line: line.to_owned(), words, input: String::new(), endless });
    }
    Ok(commands)
}

fn endless(line: &str) -> Result<(Option<usize>, &str)> {
    let Some(rest) = line.strip_prefix('~') else { return Ok((None, line)) };
    let (count, rest) = rest.split_once(' ').context("write: ~N command")?;
    Ok((Some(count.parse().context("the number of lines after `~`")?), rest))
}

pub(crate) fn split_words(line: &str) -> Result<Vec<String>> {
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
    let dir = harness::tempdir();
    let path = dir.path().join("stdout");
    let mut process = Command::new(etcdctl);
    process.args(words).env_clear().env("ETCDCTL_ENDPOINTS", endpoint);
    process.stdin(Stdio::piped()).stdout(File::create(&path)?).stderr(Stdio::piped());
    let child = harness::spawn_child(process);
    let mut child = child.with_context(|| format!("failed to run {}", etcdctl.display()))?;
    let mut stdin = child.stdin.take();
    if let Some(stdin) = &mut stdin {
        // A command that does not read its input may be gone by now.
        let _ = stdin.write_all(command.input.as_bytes());
    }
    if let Some(lines) = command.endless {
        wait_lines(&mut child, &path, lines).with_context(|| command.line.clone())?;
        child.kill()?;
    }
    drop(stdin);
    let output = child.wait_with_output()?;
    let stdout = fs::read(&path)?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    // The messages of a command that is being stopped are chance.
    let stopped = command.endless.is_some();
    let (code, stderr) = if stopped { (None, Vec::new()) } else { (output.status.code(), output.stderr) };
    Ok(Outcome { code, stdout: text(stdout), stderr: text(stderr) })
}

/// Waits until that many lines were printed, and then a moment for others.
fn wait_lines(child: &mut Child, stdout: &Path, count: usize) -> Result<()> {
    let printed = || Ok::<_, io::Error>(fs::read_to_string(stdout)?.matches('\n').count());
    let what = format!("{count} lines are printed");
    let waited = until_some(&what, || Ok((printed()? >= count || child.try_wait()?.is_some()).then_some(())));
    waited.with_context(|| format!("it printed {}", fs::read_to_string(stdout).unwrap_or_default()))?;
    thread::sleep(QUIET);
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

pub(crate) fn show_lines(stdout: &str, endpoint: &str) -> String {
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
        let commands = parse("# why\ntxn\n< a\n<\n\n~2 watch k\n").expect("it reads");
        let shape: Vec<_> = commands.iter().map(|c| (c.line.as_str(), c.input.as_str(), c.endless)).collect();
        assert_eq!(shape, [("txn", "a\n\n", None), ("~2 watch k", "", Some(2))]);
        assert!(parse("< a\n").is_err());
        assert!(parse("~ watch k\n").is_err(), "it needs a number of lines");
    }
}
