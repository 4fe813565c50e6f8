//! The table of gates in the docs.

use super::ident::one_line;
use crate::{
    file::GatesFile,
    gate::Gate,
    set::{LISTED, Set},
};

pub const BEGIN: &str = "<!-- gates: begin, made by lockgate gates render -->";
pub const END: &str = "<!-- gates: end -->";

pub fn table(file: &GatesFile) -> String {
    let mut text =
        format!("| gate | {} | since | expires | owner | what it does |\n", LISTED.map(Set::name).join(" | "));
    text += &format!("|---|{}---|---|---|---|\n", "---|".repeat(LISTED.len()));
    for gate in file.gates.values() {
        let sets = LISTED.map(|set| cell(file, gate, set)).join(" | ");
        let expires = gate.expires.map_or("–".to_owned(), |version| version.to_string());
        let what = format!("{} ([more]({}))", plain(&gate.description), gate.enhancement);
        text +=
            &format!("| `{}` | {sets} | {} | {expires} | {} | {what} |\n", gate.name, gate.since, plain(&gate.owner));
    }
    text
}

/// On, off, or the profiles in which it is on.
fn cell(file: &GatesFile, gate: &Gate, set: Set) -> String {
    let on: Vec<&str> = file.profiles.iter().map(String::as_str).filter(|profile| gate.is_on(profile, set)).collect();
    match on.len() {
        0 => "–".to_owned(),
        n if n == file.profiles.len() => "on".to_owned(),
        _ => on.join(", "),
    }
}

fn plain(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}
