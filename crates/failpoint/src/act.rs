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
    let time = match value {
        Some(Value::Int(millis)) => Duration::from_millis(u64::try_from(*millis).unwrap_or_default()),
        Some(Value::Text(text)) => match duration::parse(text) {
            Some(time) => time,
            None => {
                println!("failpoint: could not parse sleep({text}) on {name}");
                return None;
            }
        },
        other => {
            let shown = other.map_or("<nil>".to_owned(), Value::to_string);
            println!("failpoint: ignoring sleep({shown}) on {name}");
            return None;
        }
    };
    thread::sleep(time);
    None
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
