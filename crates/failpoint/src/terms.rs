//! What a point does when it is passed: a chain of terms, of which the first that allows it acts.
//!
//! ```text
//! <terms> = <term> ( "->" <term> )*
//! <term>  = ( <float> "%" | <int> "*" )* <action> [ "(" <value> ")" ]
//! <action> = off | return | sleep | panic | break | print
//! <value> = <int> | "text" | true | false | nothing
//! ```
//!
//! As in gofail a percentage needs its point (`50.0%`), a term with nothing behind its action but an arrow has no
//! value at all, and the chain is held while a term acts, so that a sleep lets others wait. What gofail would take and
//! then crash on (a term without an action, a bracket that is not closed) is refused here.

use std::{
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::act;

/// The terms do not follow the grammar of [`Terms`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("failpoint: could not parse terms")]
pub struct BadTerms;

/// The argument of a term; for `return` it is the value that the point receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// No value: `return` or `return()`.
    Unit,
    /// An integer, as in `return(5)`.
    Int(i64),
    /// A text in double quotes or backquotes, as in `return("disk full")`.
    Text(String),
    /// `true` or `false`.
    Bool(bool),
}

impl Value {
    /// The type's name in gofail's messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Unit => "struct {}",
            Value::Int(_) => "int",
            Value::Text(_) => "string",
            Value::Bool(_) => "bool",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Unit => f.write_str("{}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Text(value) => f.write_str(value),
            Value::Bool(value) => write!(f, "{value}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Off,
    Return,
    Sleep,
    Panic,
    Break,
    Print,
}

const ACTIONS: &[(&str, Action)] = &[
    ("off", Action::Off),
    ("return", Action::Return),
    ("sleep", Action::Sleep),
    ("panic", Action::Panic),
    ("break", Action::Break),
    ("print", Action::Print),
];

/// A condition before a term; all must allow it.
#[derive(Debug, PartialEq)]
enum Condition {
    /// So many times more.
    Count(u64),
    /// With this probability.
    Chance(f64),
}

impl Condition {
    fn allows(&mut self) -> bool {
        match self {
            Condition::Count(0) => false,
            Condition::Count(left) => {
                *left -= 1;
                true
            }
            Condition::Chance(chance) => random() <= *chance,
        }
    }
}

#[derive(Debug, PartialEq)]
struct Term {
    conditions: Vec<Condition>,
    action: Action,
    value: Option<Value>,
}

/// The terms of one point, with their remaining counts.
///
/// The grammar is gofail's, for example `2*return(1)->50.0%sleep(100)`: terms are chained by `->`,
/// and a term is an action after any number of conditions, with its argument in parentheses. The
/// first term whose conditions allow it acts.
#[derive(Debug)]
pub struct Terms {
    text: String,
    chain: Mutex<Vec<Term>>,
    /// How many times a term has acted. It is outside the lock of the chain because that is held
    /// during a sleep.
    count: AtomicU64,
}

impl Terms {
    /// Parses a chain of at least one term.
    pub fn parse(text: &str) -> Result<Terms, BadTerms> {
        let mut rest = text;
        let mut chain = Vec::new();
        while !rest.is_empty() {
            chain.push(term(&mut rest).ok_or(BadTerms)?);
            match rest.strip_prefix("->") {
                Some(next) => rest = next,
                None if rest.is_empty() => {}
                None => return Err(BadTerms),
            }
        }
        if chain.is_empty() {
            return Err(BadTerms);
        }
        Ok(Terms { text: text.to_owned(), chain: Mutex::new(chain), count: AtomicU64::new(0) })
    }

    /// The terms as they were written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many times a term has acted. Conditions that refused do not count.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Runs the first term whose conditions allow it, at the point `name`. Returns the value of a
    /// `return` term, and `None` otherwise. The chain stays locked during the action, so that a
    /// sleep delays every other thread that reaches this point.
    pub fn run(&self, name: &str) -> Option<Value> {
        let mut chain = self.chain.lock().unwrap_or_else(PoisonError::into_inner);
        let term = chain.iter_mut().find_map(|term| {
            // In order, and no further than the first that refuses: a count before a chance is used up all the same.
            term.conditions.iter_mut().all(Condition::allows).then_some(&*term)
        })?;
        self.count.fetch_add(1, Ordering::Relaxed);
        let value = term.value.as_ref();
        match term.action {
            Action::Off => None,
            Action::Return => value.cloned(),
            Action::Sleep => act::sleep(name, value),
            Action::Panic => act::panic(name, value),
            Action::Break => act::break_in(),
            Action::Print => act::print(name),
        }
    }
}

fn term(rest: &mut &str) -> Option<Term> {
    let mut conditions = Vec::new();
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        conditions.push(condition(rest)?);
    }
    let (name, action) = ACTIONS.iter().find(|(name, _)| rest.starts_with(name))?;
    *rest = &rest[name.len()..];
    let value = value(rest)?;
    Some(Term { conditions, action: *action, value })
}

fn condition(rest: &mut &str) -> Option<Condition> {
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, tail) = rest.split_at(end);
    let condition = match tail.as_bytes().first()? {
        b'%' if number.contains('.') => Condition::Chance(number.parse::<f64>().ok()? / 100.0),
        b'*' => Condition::Count(number.parse().ok()?),
        _ => return None,
    };
    *rest = &tail[1..];
    Some(condition)
}

/// The outer `None` is a value that cannot be read, the inner one a term that has none.
#[expect(clippy::option_option, reason = "the two are different answers, and both are only used here")]
fn value(rest: &mut &str) -> Option<Option<Value>> {
    if rest.is_empty() {
        return Some(Some(Value::Unit));
    }
    let Some(inner) = rest.strip_prefix('(') else { return Some(None) };
    let (value, tail) = if let Some(tail) = inner.strip_prefix(')') {
        (Value::Unit, tail)
    } else if inner.starts_with(['"', '`']) {
        let (text, tail) = quoted(inner)?;
        (Value::Text(text), tail.strip_prefix(')')?)
    } else {
        let (word, tail) = inner.split_once(')')?;
        (plain(word)?, tail)
    };
    *rest = tail;
    Some(Some(value))
}

fn plain(word: &str) -> Option<Value> {
    match word {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        number => number.parse().ok().map(Value::Int),
    }
}

/// A text in quotes at the beginning, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    if let Some(raw) = text.strip_prefix('`') {
        return raw.split_once('`').map(|(text, tail)| (text.to_owned(), tail));
    }
    let mut chars = text.strip_prefix('"')?.chars();
    let mut out = String::new();
    loop {
        match chars.next()? {
            '"' => return Some((out, chars.as_str())),
            '\\' => out.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other @ ('"' | '\\') => other,
                _ => return None,
            }),
            other => out.push(other),
        }
    }
}

/// From 0 to 1, without a generator of our own to seed: what is tested here is chance.
fn random() -> f64 {
    (RandomState::new().build_hasher().finish() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread};

    use test_case::test_case;

    use super::*;

    fn text(value: Option<Value>) -> String {
        value.map_or("-".into(), |value| format!("{}:{value}", value.kind()))
    }

    #[test_case("off", "-|-"; "off")]
    #[test_case("return", "struct {}:{}"; "a return without brackets")]
    #[test_case("return()", "struct {}:{}"; "a return with empty brackets")]
    #[test_case("return(-5)", "int:-5"; "an int")]
    #[test_case("return(true)", "bool:true"; "a bool")]
    #[test_case(r#"return("a \"b\" (c)->off")"#, "string:a \"b\" (c)->off"; "a text")]
    #[test_case("return(`x\\n`)", "string:x\\n"; "a raw text")]
    #[test_case("2*return(1)", "int:1|int:1|-|-"; "a count")]
    #[test_case("2*return(1)->1*return(2)", "int:1|int:1|int:2|-"; "a chain")]
    #[test_case("1*off->return(2)", "-|int:2|int:2"; "off counts as a term")]
    #[test_case("0.0%return(1)->100.0%return(2)", "int:2|int:2"; "chances")]
    #[test_case("2*0.0%return(1)->return(3)", "int:3|int:3|int:3"; "a count before a chance")]
    #[test_case("2*100.%return(1)", "int:1|int:1|-"; "both")]
    #[test_case("return->off", "-|-"; "nothing but an arrow behind it: no value")]
    #[test_case("off->", "-"; "an arrow at the end")]
    fn values_of_successive_runs(terms: &str, want: &str) {
        let terms = Terms::parse(terms).expect("terms");
        for want in want.split('|') {
            assert_eq!(text(terms.run("p")), want);
        }
    }

    #[test_case(""; "nothing")]
    #[test_case("run"; "an unknown action")]
    #[test_case("50%return"; "a percentage without its point")]
    #[test_case("3return"; "a number alone")]
    #[test_case("3*"; "no action")]
    #[test_case("(5)"; "only a value")]
    #[test_case("return(1"; "an open bracket")]
    #[test_case("return(x)"; "an unknown value")]
    #[test_case("return(1)off"; "no arrow")]
    #[test_case("return(\"x)"; "an open text")]
    #[test_case("99999999999999999999*off"; "a count too large")]
    #[test_case("off off"; "a space")]
    fn malformed_terms_are_refused(terms: &str) {
        assert!(Terms::parse(terms).is_err());
    }

    #[test]
    fn acting_terms_are_counted() {
        let terms = Terms::parse("10*print->1*return(1)").expect("terms");
        (0..3).for_each(|_| drop(terms.run("p")));
        assert_eq!(terms.count(), 3);
        (0..9).for_each(|_| drop(terms.run("p")));
        assert_eq!(terms.count(), 11);
    }

    #[test]
    fn a_sleep_holds_the_chain() {
        let terms = Arc::new(Terms::parse(r#"sleep("1h")"#).expect("terms"));
        let sleeping = Arc::clone(&terms);
        // The thread ends with the test program.
        thread::spawn(move || sleeping.run("p"));
        harness::until("the point sleeps", || terms.count() == 1);
        assert!(terms.chain.try_lock().is_err());
    }

    #[test]
    fn a_sleep_without_a_valid_time_is_ignored() {
        assert_eq!(Terms::parse("sleep(true)").expect("terms").run("p"), None);
    }

    #[test]
    fn a_chance_of_one_half_hits_about_half_of_the_time() {
        let terms = Terms::parse("50.0%return(1)").expect("terms");
        let hits = (0..1000).filter(|_| terms.run("p").is_some()).count();
        assert!((350..650).contains(&hits), "{hits} of 1000");
    }
}
