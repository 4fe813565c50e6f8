//! The question before a way down.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::failure::Failure;

/// Goes on only after a yes. Without someone to ask, nothing is done.
pub(super) fn ask() -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::error(
            "going down needs a confirmation, and there is no terminal to ask at; read the plan above, then give -y",
        ));
    }
    eprint!("Continue? [y/N] ");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(Failure::error)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::error("not confirmed; nothing was changed")),
    }
}
