//! Changes of the text of `gates.toml` that leave everything else as people wrote it: order, comments, blank lines.

use std::collections::BTreeSet;

use featuregate::Version;
use toml_edit::{Array, DocumentMut, Item, Table, value};

use crate::{gate::Gate, set::Set};

/// One change, with no choices left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    Add(Box<Gate>),
    /// The sets of a gate, in one profile or (`None`) in all that have no list of their own.
    Sets {
        gate: String,
        profile: Option<String>,
        sets: BTreeSet<Set>,
    },
    Retire {
        gate: String,
        version: Version,
    },
}

/// The text after the changes. The text must be TOML; whether the result is sound is for [`super::GatesFile::parse`].
pub fn edit(text: &str, edits: &[Edit]) -> Result<String, toml_edit::TomlError> {
    let mut document: DocumentMut = text.parse()?;
    for edit in edits {
        match edit {
            Edit::Add(gate) => add(&mut document, gate),
            Edit::Sets { gate, profile, sets } => set(&mut document, gate, profile.as_deref(), sets),
            Edit::Retire { gate, version } => retire(&mut document, gate, *version),
        }
    }
    let new = document.to_string();
    // The parser reads both ends of lines and writes one.
    let is_windows = text.contains('\n') && text.matches('\n').count() == text.matches("\r\n").count();
    Ok(if is_windows { new.replace("\r\n", "\n").replace('\n', "\r\n") } else { new })
}

fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> Item {
    value(texts.into_iter().collect::<Array>())
}

fn sets_item(sets: &BTreeSet<Set>) -> Item {
    list(sets.iter().map(|set| set.name()))
}

fn tables<'a>(document: &'a mut DocumentMut, name: &str) -> &'a mut dyn toml_edit::TableLike {
    let item = document.entry(name).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    if !item.is_table_like() {
        *item = Item::Table(Table::new());
    }
    item.as_table_like_mut().expect("it was made a table above")
}

fn add(document: &mut DocumentMut, gate: &Gate) {
    let mut table = Table::new();
    let texts = [
        ("description", &gate.description),
        ("owner", &gate.owner),
        ("contact", &gate.contact),
        ("enhancement", &gate.enhancement),
    ];
    for (key, text) in texts {
        table.insert(key, value(text));
    }
    table.insert("since", value(gate.since.to_string()));
    if let Some(expires) = gate.expires {
        table.insert("expires", value(expires.to_string()));
    }
    if !gate.depends_on.is_empty() {
        table.insert("depends_on", list(gate.depends_on.iter().map(String::as_str)));
    }
    if gate.reversible {
        table.insert("reversible", value(true));
    }
    table.insert("sets", sets_item(&gate.sets));
    if !gate.profiles.is_empty() {
        table.insert("profiles", value(toml_edit::InlineTable::new()));
        for (profile, sets) in &gate.profiles {
            table["profiles"][profile] = sets_item(sets);
        }
    }
    place(document, gate, &mut table);
    tables(document, "gate").insert(&gate.name, Item::Table(table));
}

/// Before the first gate with a later name, so that a file in order stays in order.
fn place(document: &mut DocumentMut, gate: &Gate, table: &mut Table) {
    let Some(gates) = document.get("gate").and_then(Item::as_table_like) else { return };
    let positions = |item: &Item| item.as_table().and_then(Table::position);
    let later =
        gates.iter().filter(|(name, _)| *name > gate.name.as_str()).filter_map(|(_, item)| positions(item)).min();
    let last = gates.iter().filter_map(|(_, item)| positions(item)).max();
    // Tables with one position are printed in the order in which they were inserted, so the newcomer takes the place of
    // the later one, and that one and all behind it move on by one.
    match (later, last) {
        (Some(at), _) => {
            shift(document.as_item_mut(), at);
            table.set_position(Some(at));
        }
        (None, Some(last)) => {
            shift(document.as_item_mut(), last + 1);
            table.set_position(Some(last + 1));
        }
        (None, None) => {}
    }
}

fn shift(item: &mut Item, from: isize) {
    let Some(table) = item.as_table_mut() else { return };
    if table.position().is_some_and(|position| position >= from) {
        table.set_position(table.position().map(|position| position + 1));
    }
    for (_, inner) in table.iter_mut() {
        shift(inner, from);
    }
}

fn set(document: &mut DocumentMut, gate: &str, profile: Option<&str>, sets: &BTreeSet<Set>) {
    let Some(table) = tables(document, "gate").get_mut(gate).and_then(Item::as_table_like_mut) else { return };
    match profile {
        None => replace(table, "sets", sets),
        Some(profile) => {
            let profiles = table.entry("profiles").or_insert(value(toml_edit::InlineTable::new()));
            if let Some(profiles) = profiles.as_table_like_mut() {
                replace(profiles, profile, sets);
            }
        }
    }
}

/// Keeps the comment behind the old value.
fn replace(table: &mut dyn toml_edit::TableLike, key: &str, sets: &BTreeSet<Set>) {
    let mut item = sets_item(sets);
    let old = table.get(key).and_then(Item::as_value).map(|old| old.decor().clone());
    if let (Some(new), Some(decor)) = (item.as_value_mut(), old) {
        *new.decor_mut() = decor;
    }
    table.insert(key, item);
}

fn retire(document: &mut DocumentMut, gate: &str, version: Version) {
    tables(document, "gate").remove(gate);
    let retired = tables(document, "retired");
    retired.insert(gate, value(version.to_string()));
    if let Some(table) = document.get_mut("retired").and_then(Item::as_table_mut) {
        table.set_implicit(false);
    }
}
