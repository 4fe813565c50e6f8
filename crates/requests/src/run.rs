//! Sends the steps of a script one after the other.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{
    fill::Seen,
    normal::Normal,
    script::{Script, Step},
    send::{Answer, Target},
};

/// A definition or a policy is in force within this, else something is wrong.
const UNTIL_MAX: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(100);

/// What each step got, in the form that is kept.
pub fn run(script: &Script, target: &Target) -> Result<Vec<String>> {
    let (mut seen, mut normal) = (Seen::default(), Normal::new(target.address()));
    let one = |step: &Step| {
        let answer = ask(step, target, &mut seen).with_context(|| format!("step {:?}", step.name))?;
        let sent = serde_json::from_str(&seen.body(&step.body)?).unwrap_or(Value::Null);
        Ok(normal.answer(&step.name, &sent, &answer))
    };
    script.steps.iter().map(one).collect()
}

fn ask(step: &Step, target: &Target, seen: &mut Seen) -> Result<Answer> {
    let body = seen.body(&step.body)?;
    let path = seen.fill(&step.target)?;
    let mut headers = Vec::new();
    for (name, value) in &step.headers {
        headers.push((name.clone(), seen.fill(value)?));
    }
    let given = step.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    headers.extend(step.media().filter(|_| !given).map(|media| ("Content-Type".to_owned(), media.to_owned())));
    let start = Instant::now();
    let answer = loop {
        let answer = target.send(step.verb(), &path, &headers, body.as_bytes())?;
        if step.until.is_none_or(|code| code == answer.code) || start.elapsed() > UNTIL_MAX {
            break answer;
        }
        thread::sleep(POLL);
    };
    let value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    seen.note(&step.name, body, value);
    Ok(answer)
}
