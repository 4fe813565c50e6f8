//! Lines as they reach a file.

use std::path::Path;

use tracing_subscriber::layer::SubscriberExt;

use super::*;

/// Runs `log` with lines going to a file, and returns the file.
fn logged(level: LogLevel, format: LogFormat, log: impl FnOnce()) -> String {
    let dir = harness::tempdir();
    let path = dir.path().join("m.log");
    let layer = ZapLayer::new(level, format, &[LogOutput::File(path.clone())], None).expect("an open file");
    let filter = layer.filter();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer.with_filter(filter)), log);
    std::fs::read_to_string(path).expect("the log")
}

/// The line without its time and line number.
fn normal(line: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|err| panic!("{err}: {line}"));
    let ts = value["ts"].as_str().expect("a time");
    assert!(ts.len() >= 27 && ts.as_bytes()[10] == b'T' && ts.as_bytes()[19] == b'.', "{ts}");
    let caller = value["caller"].as_str().expect("a caller");
    assert!(caller.starts_with("logging/tests.rs:"), "{caller}");
    line.replace(ts, "TS").replace(caller, "CALLER")
}

#[test]
fn json_in_zaps_order() {
    let text = logged(LogLevel::Info, LogFormat::Json, || {
        tracing::info!("ready to serve client requests");
        tracing::warn!(
            "local-member-id" = "2e12",
            count = 3u64,
            negative = -1,
            share = 0.5,
            nan = f64::NAN,
            flag = true,
            urls = ?vec!["http://a:1", "http://b:2"],
            address = ?"[::1]:2379",
            error = %std::io::Error::other("bad \"thing\"\n\u{1}"),
            "added {}",
            "member"
        );
        tracing::error!("zap.level" = "fatal", "discovery failed");
        tracing::debug!("below the level");
        tracing::info!(target: "raft", "became leader");
        tracing::info!(key = "no message");
    });
    let lines: Vec<String> = text.lines().map(normal).collect();
    assert_eq!(
        lines,
        [
            r#"{"level":"info","ts":"TS","caller":"CALLER","msg":"ready to serve client requests"}"#,
            r#"{"level":"warn","ts":"TS","caller":"CALLER","msg":"added member","local-member-id":"2e12","count":3,"negative":-1,"share":0.5,"nan":"NaN","flag":true,"urls":["http://a:1","http://b:2"],"address":"\"[::1]:2379\"","error":"bad \"thing\"\n\u0001"}"#,
            r#"{"level":"fatal","ts":"TS","caller":"CALLER","msg":"discovery failed"}"#,
            r#"{"level":"info","ts":"TS","logger":"raft","caller":"CALLER","msg":"became leader"}"#,
            r#"{"level":"info","ts":"TS","caller":"CALLER","msg":"","key":"no message"}"#,
        ]
    );
}

#[test]
fn console_for_people() {
    let text = logged(LogLevel::Debug, LogFormat::Console, || {
        tracing::info!(path = "/d", empty = "", words = "a b", n = 3, "opened\nbackend");
        tracing::debug!(target: "h2::codec", "wire noise");
    });
    let line = text.trim_end();
    let (stamp, rest) = line.split_once(' ').expect("a time");
    assert!(stamp.len() >= 27, "{stamp}");
    let (shown, caller) = rest.rsplit_once("  ").expect("a caller");
    assert_eq!(shown, "INFO  opened\\nbackend  path=/d  empty=\"\"  words=\"a b\"  n=3");
    assert!(caller.starts_with("logging/tests.rs:"), "{caller}");
}

#[test]
fn levels_above_error() {
    let text = logged(LogLevel::Panic, LogFormat::Json, || {
        tracing::error!("an error");
        tracing::error!("zap.level" = "dpanic", "a dpanic");
        tracing::error!("zap.level" = "panic", "a panic");
        tracing::error!("zap.level" = "fatal", "the end");
    });
    let levels: Vec<bool> = text.lines().map(|line| line.contains("panic\"") || line.contains("fatal\"")).collect();
    assert_eq!(levels, [true, true], "{text}");
    assert!(!text.contains("dpanic"), "{text}");
}

#[test]
fn rotation_by_size_keeps_some() {
    let dir = harness::tempdir();
    let path = dir.path().join("m.log");
    std::fs::write(dir.path().join("m-notes.log"), "not ours").expect("a file beside");
    let mut file = sink::LogFile::open(&path, Some(Rotation::by_size(1, 2))).expect("an open file");
    let line = vec![b'x'; 400 * 1024];
    for _ in 0..12 {
        file.write(&line).expect("a written line");
    }
    let mut names: Vec<String> = std::fs::read_dir(dir.path())
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(names.contains(&"m-notes.log".to_owned()) && names.contains(&"m.log".to_owned()), "{names:?}");
    for name in names.iter().filter(|name| *name != "m-notes.log") {
        let bytes = std::fs::metadata(dir.path().join(name)).expect("a file").len();
        assert_eq!(bytes, 2 * line.len() as u64, "{name}");
    }
}

#[test]
fn unwritable_file_is_named() {
    let output = LogOutput::File(Path::new("/nonexistent/dir/m.log").to_owned());
    let error = ZapLayer::new(LogLevel::Info, LogFormat::Json, &[output], None).err().expect("a refusal");
    assert!(error.to_string().starts_with("--log-outputs: cannot open /nonexistent/dir/m.log: "), "{error}");
}
