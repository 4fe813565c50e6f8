//! The actions of terms.

use std::{
    process::Command,
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use crate::{Value, duration};

/// Held by an answer to a tool and by the end of the process: who asks for a crash still gets an answer.
pub(crate) static LAST_WORDS: Mutex<()> = Mutex::new(());

/// How a crash of a Go program ends, which is what fault tools look for.
const EXIT_CODE: i32 = 2;

pub(crate) fn sleep(name: &str, value: Option<&Value>) -> Option<Value> {
    if let Some(time) = sleep_time(name, value) {
        thread::sleep(time);
    }
    None
}

/// How long a point sleeps. Prints why, if the value is not a time.
fn sleep_time(name: &str, value: Option<&Value>) -> Option<Duration> {
    match value {
        Some(Value::Int(millis)) => Some(Duration::from_millis(u64::try_from(*millis).unwrap_or_default())),
        Some(Value::Text(text)) => {
            let time = duration::parse(text);
            if time.is_none() {
                println!("failpoint: could not parse sleep({text}) on {name}");
            }
            time
        }
        other => {
            let shown = other.map_or("<nil>".to_owned(), Value::to_string);
            println!("failpoint: ignoring sleep({shown}) on {name}");
            None
        }
    }
}

/// Ends the process at once, whatever other threads are doing: nothing is flushed, no destructor runs.
pub(crate) fn panic(name: &str, value: Option<&Value>) -> ! {
    let _last = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let shown = value.map_or(name.to_owned(), Value::to_string);
    eprintln!("panic: failpoint panic: {shown}");
    // SAFETY: takes no pointers and does not return.
    unsafe { libc::_exit(EXIT_CODE) }
}

/// Attaches a debugger and gives it the time to stop the process.
pub(crate) fn break_in() -> Option<Value> {
    let program = std::env::current_exe().unwrap_or_default();
    match Command::new("gdb").arg(program).arg(std::process::id().to_string()).spawn() {
        Ok(mut debugger) => {
            thread::sleep(Duration::from_secs(3));
            thread::spawn(move || debugger.wait());
        }
        Err(error) => println!("failpoint: could not start gdb: {error}"),
    }
    None
}

pub(crate) fn print(name: &str) -> Option<Value> {
    println!("failpoint print: {name}");
    None
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(Some(Value::Int(30)) => Some(30); "an int in milliseconds")]
    #[test_case(Some(Value::Int(-1)) => Some(0); "a negative int")]
    #[test_case(Some(Value::Text("1.5s".into())) => Some(1500); "a duration")]
    #[test_case(Some(Value::Text("soon".into())) => None; "a text that is not a duration")]
    #[test_case(Some(Value::Bool(true)) => None; "a bool")]
    #[test_case(Some(Value::Unit) => None; "a unit")]
    #[test_case(None => None; "no value")]
    fn sleep_millis(value: Option<Value>) -> Option<u128> {
        sleep_time("p", value.as_ref()).map(|time| time.as_millis())
    }
}
