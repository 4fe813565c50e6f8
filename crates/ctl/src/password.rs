//! Passwords from the terminal, which does not show them, or from standard input.

use std::io::{self, Write};

use rustix::{
    stdio::stdin,
    termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr},
};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// Asks for a password. At the end of the input it is empty.
pub(crate) async fn ask(prompt: &str) -> Result<String, Failure> {
    print(prompt)?;
    let silence = Silence::begin();
    let read = tokio::task::spawn_blocking(line);
    let interrupted = || Failure::told(u8::MAX);
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::error)?;
    // Whoever breaks off here must get back a terminal that echoes.
    let line = tokio::select! {
        line = read => line.map_err(Failure::error)?,
        _ = tokio::signal::ctrl_c() => return Err(interrupted()),
        _ = terminate.recv() => return Err(interrupted()),
    };
    drop(silence);
    print("\n")?;
    let line = line.map_err(|error| Failure::error(format!("failed during password entry: {error}")))?;
    Ok(line.trim().to_owned())
}

/// A new password of a user, typed twice.
pub(crate) async fn ask_twice(user: &str) -> Result<String, Failure> {
    let failed = |failure: Failure| match failure.text() {
        "" => failure,
        text => Failure::bad_args(format!("failed to ask password: {text}")),
    };
    let first = ask(&format!("Password of {user}: ")).await.map_err(failed)?;
    if first.is_empty() {
        return Err(Failure::bad_args("empty password"));
    }
    let second = ask(&format!("Type password of {user} again for confirmation: ")).await.map_err(failed)?;
    if first != second {
        return Err(Failure::bad_args("given passwords are different"));
    }
    Ok(first)
}

/// The first word of the next line, without a prompt.
pub(crate) fn first_word() -> String {
    let line = line().unwrap_or_default();
    line.split_whitespace().next().unwrap_or_default().to_owned()
}

fn line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().read_line(&mut line).map(|_| line)
}

fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|_| Failure::told(1))
}

/// While it lives, the terminal does not show what is typed.
struct Silence(Termios);

impl Silence {
    /// None if standard input is no terminal.
    fn begin() -> Option<Silence> {
        let before = tcgetattr(stdin()).ok()?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(stdin(), OptionalActions::Now, &silent).ok()?;
        Some(Silence(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.0);
    }
}
