//! Commands that run at the end of the program, however it ends.

use std::{
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

/// A shell script that runs once: when this value is dropped, or when the program ends, also by SIGKILL or Ctrl-C.
///
/// A shell is started at once and waits for the end of its standard input, whose only write end this value holds.
#[derive(Debug)]
pub struct AtEnd {
    shell: Child,
}

impl AtEnd {
    /// `args` are `$1` and so on in the script. The script has no output.
    pub fn run(script: &str, args: &[&str]) -> AtEnd {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("cat >/dev/null\n{script}"), "sh"]).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C interrupts the foreground process group, which the shell must not belong to.
        command.process_group(0);
        AtEnd { shell: command.spawn().unwrap_or_else(|error| panic!("failed to start sh: {error}")) }
    }
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempdir;

    #[test]
    fn the_script_has_run_after_the_drop_and_not_before() {
        let dir = tempdir();
        let file = dir.path().join("file");
        let at_end = AtEnd::run(r#"echo "$1" >"$2""#, &["text", &file.to_string_lossy()]);
        assert!(!file.exists());
        drop(at_end);
        assert_eq!(std::fs::read_to_string(file).unwrap(), "text\n");
    }
}
