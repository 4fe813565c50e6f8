//! `/debug/vars`: command line, limit of descriptors, state of raft.

use axum::extract::State;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{App, Health, answer};

pub(super) async fn handle<H: Health>(State(app): State<App<H>>, method: Method) -> Response {
    if method != Method::GET {
        return answer::method_not_allowed();
    }
    let args: Vec<String> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let vars = [
        ("cmdline", json!(args)),
        ("file_descriptor_limit", json!(descriptor_limit())),
        ("raft.status", app.health.raft_status()),
    ];
    let lines: Vec<String> = vars.iter().map(|(name, value): &(_, Value)| format!("{name:?}: {value}")).collect();
    let body = format!("{{\n{}\n}}\n", lines.join(",\n"));
    let kind = HeaderValue::from_static("application/json; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

fn descriptor_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if result == 0 { limit.rlim_cur } else { 0 }
}
