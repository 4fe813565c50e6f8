//! A small language for scenarios, one command a line.
//!
//! Keys are `a`, `a..c` (without c) or `a..` (from a on); `..` is all. Options are words or `name=value`.

use std::{collections::BTreeMap, fmt::Write};

use bytes::Bytes;
use mvcc::{CompactionJob, Filters, Options, WatchSpec, WatchStream, check};
use prost::Message;
use proto::{
    etcdserverpb::{
        Compare, DeleteRangeRequest, PutRequest, RangeRequest, RangeResponse, RequestOp, TxnRequest, TxnResponse,
        compare::TargetUnion, request_op::Request, response_op::Response,
    },
    mvccpb::{Event, KeyValue},
};

use super::store::{TestStore, error, request_error};

pub(crate) struct Script {
    store: TestStore,
    streams: BTreeMap<String, WatchStream>,
    job: Option<CompactionJob>,
}

/// The words of a command.
struct Words<'a> {
    plain: Vec<&'a str>,
    options: BTreeMap<&'a str, &'a str>,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Self {
        let (options, plain) = line.split_whitespace().partition::<Vec<_>, _>(|w| w.contains('=') || is_flag(w));
        let options = options.into_iter().map(|w| w.split_once('=').unwrap_or((w, ""))).collect();
        Words { plain, options }
    }

    fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    fn number(&self, name: &str) -> i64 {
        self.options.get(name).map_or(0, |v| v.parse().unwrap_or_else(|_| panic!("{name}={v} is no number")))
    }

    fn keys(&self) -> (Bytes, Bytes) {
        let bytes = |s: &str| Bytes::copy_from_slice(s.as_bytes());
        match self.plain.get(1).copied().unwrap_or_default().split_once("..") {
            None => (bytes(self.plain.get(1).copied().unwrap_or_default()), Bytes::new()),
            Some(("", "")) => (bytes("\0"), bytes("\0")),
            Some((from, "")) => (bytes(from), bytes("\0")),
            Some((from, to)) => (bytes(from), bytes(to)),
        }
    }
}

fn is_flag(word: &str) -> bool {
    ["prev", "ignore_value", "ignore_lease", "keys_only", "count_only", "no_put", "no_delete", "desc", "unordered"]
        .contains(&word)
}

impl Script {
    pub(crate) fn new() -> Self {
        let options = Options { watch_queue_items_max: 2, watch_merge_bytes_max: 0, ..Options::default() };
        Script { store: TestStore::with_options(options), streams: BTreeMap::new(), job: None }
    }

    pub(crate) fn run(&mut self, line: &str) -> String {
        let words = Words::new(line);
        match words.plain.first().copied().unwrap_or_default() {
            "put" | "del" | "get" => self.single(line),
            "txn" => self.txn(line),
            "compact" => self.compact(words.number("rev")),
            "step" => self.step(words.number("limit")),
            "reopen" => self.reopen(),
            "hash" => self.hash(words.number("rev")),
            "stream" => self.open(words.plain[1]),
            "close" => self.streams.remove(words.plain[1]).map_or("no stream".into(), |_| "closed".into()),
            "watch" => self.watch(&words),
            "cancel" => answer(self.stream(&words).cancel(words.number("id")).map(|()| "cancelled".into())),
            "progress" if words.has("id") => self.stream(&words).progress(words.number("id")).to_string(),
            "progress" => self.stream(&words).progress_all().to_string(),
            "pull" => self.pull(&words),
            "stats" => {
                let s = self.store.store.stats();
                format!("keys {} revisions {} watchers {} slow {}", s.keys, s.revisions, s.watchers, s.slow_watchers)
            }
            other => panic!("unknown command {other}"),
        }
    }

    fn stream(&self, words: &Words<'_>) -> &WatchStream {
        let name = words.options.get("on").copied().unwrap_or("s");
        self.streams.get(name).unwrap_or_else(|| panic!("no stream {name}"))
    }

    fn single(&mut self, line: &str) -> String {
        let mut batch = self.store.backend.write();
        let request = operation(line);
        if let Request::RequestRange(req) = &request {
            drop(batch);
            let checked = check::range(req).map_err(request_error);
            let result = checked.and_then(|()| self.store.store.range(req).map_err(error));
            return answer(result.map(|r| show_range(&r.into_response())));
        }
        let mut txn = self.store.store.begin(&mut batch, &mut self.store.leases);
        match &request {
            Request::RequestPut(req) => {
                let checked = check::put(req).map_err(request_error);
                answer(checked.and_then(|()| txn.put(req).map_err(error)).map(|r| show(&Response::ResponsePut(r))))
            }
            Request::RequestDeleteRange(req) => {
                let checked = check::delete_range(req).map_err(request_error);
                let result = checked.and_then(|()| txn.delete_range(req).map_err(error));
                answer(result.map(|r| show(&Response::ResponseDeleteRange(r))))
            }
            _ => unreachable!("ranges were answered above"),
        }
    }

    fn txn(&mut self, line: &str) -> String {
        let req = transaction(line.trim_start_matches("txn"));
        if let Err(e) = check::txn(&req, 4) {
            return format!("error {}", request_error(e));
        }
        if mvcc::is_read_only(&req) {
            return answer(self.store.store.read_txn(&req).map_err(error).map(|r| show_txn(&r)));
        }
        let mut batch = self.store.backend.write();
        let mut txn = self.store.store.begin(&mut batch, &mut self.store.leases);
        answer(txn.txn(&req).map_err(error).map(|r| show_txn(&r)))
    }

    fn compact(&mut self, revision: i64) -> String {
        let mut batch = self.store.backend.write();
        match self.store.store.compact(&mut batch, revision) {
            Err(e) => format!("error {}", error(e)),
            Ok(job) => {
                self.job = Some(job);
                format!("compact revision {}", self.store.store.compact_revision())
            }
        }
    }

    fn step(&mut self, limit: i64) -> String {
        let Some(job) = &mut self.job else { return "no job".into() };
        let progress = job.step(&self.store.store, if limit > 0 { limit as usize } else { 1000 });
        if !progress.done {
            return format!("removed {}", progress.removed);
        }
        self.job = None;
        format!("removed {}, done", progress.removed)
    }

    fn reopen(&mut self) -> String {
        self.streams.clear();
        self.store = self.store.reopened();
        self.job = self.store.store.pending_compaction();
        let store = &self.store.store;
        let pending = if self.job.is_some() { ", compaction pending" } else { "" };
        format!("revision {} compact revision {}{pending}", store.revision(), store.compact_revision())
    }

    fn hash(&self, revision: i64) -> String {
        let hash = self.store.store.hash_kv(revision).map_err(error);
        answer(hash.map(|h| format!("{} over {}..={} at {}", h.hash, h.compact_revision, h.hash_revision, h.revision)))
    }

    fn open(&mut self, name: &str) -> String {
        self.streams.insert(name.into(), self.store.store.watch_stream(|| {}));
        "open".into()
    }

    fn watch(&mut self, words: &Words<'_>) -> String {
        let (key, range_end) = words.keys();
        let spec = WatchSpec {
            id: words.number("id"),
            key,
            range_end,
            start_revision: words.number("rev"),
            filters: Filters { no_put: words.has("no_put"), no_delete: words.has("no_delete") },
            prev_kv: words.has("prev"),
        };
        answer(self.stream(words).watch(spec).map(|created| format!("watcher {}", created.id)))
    }

    fn pull(&self, words: &Words<'_>) -> String {
        let mut out = String::new();
        while let Some(item) = self.stream(words).next() {
            let _ = write!(out, "watcher {} at {}:", item.watch_id, item.revision);
            if item.compact_revision != 0 {
                let _ = write!(out, " compacted {}", item.compact_revision);
            } else if item.events.is_empty() {
                out.push_str(" progress");
            }
            for event in item.events.iter() {
                let event = Event::decode(&event[..]).expect("an event");
                let kind = if event.r#type == 0 { "put" } else { "delete" };
                let _ = write!(out, " {kind} {}", show_kv(event.kv.as_ref().expect("a key")));
                if let Some(prev) = &event.prev_kv {
                    let _ = write!(out, " before {}", show_kv(prev));
                }
            }
            out.push('\n');
        }
        if out.is_empty() { "nothing".into() } else { out.trim_end().into() }
    }
}

fn answer<E: std::fmt::Display>(result: Result<String, E>) -> String {
    result.unwrap_or_else(|e| format!("error {e}"))
}

/// `if mod(a)=2 value(b)!x then put b 1; get b else del c`, with `( … )` around a nested one.
fn transaction(text: &str) -> TxnRequest {
    let (compares, rest) = text.trim().trim_start_matches("if ").split_once("then").unwrap_or_else(|| panic!("{text}"));
    let (success, failure) = split_outside(rest, " else ");
    TxnRequest {
        compare: compares.split_whitespace().filter(|w| *w != "if").map(compare).collect(),
        success: operations(&success),
        failure: operations(&failure),
    }
}

fn split_outside(text: &str, at: &str) -> (String, String) {
    let balanced = |i: usize| text[..i].matches('(').count() == text[..i].matches(')').count();
    let found = text.match_indices(at).map(|(i, _)| i).find(|i| balanced(*i));
    match found {
        Some(i) => (text[..i].into(), text[i + at.len()..].into()),
        None => (text.into(), String::new()),
    }
}

fn operations(text: &str) -> Vec<RequestOp> {
    let (first, rest) = split_outside(text, ";");
    let mut ops = Vec::new();
    let first = first.trim();
    if !first.is_empty() {
        let nested = first.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
        let request = nested.map_or_else(|| operation(first), |t| Request::RequestTxn(transaction(t)));
        ops.push(RequestOp { request: Some(request) });
    }
    if !rest.trim().is_empty() {
        ops.extend(operations(&rest));
    }
    ops
}

fn compare(word: &str) -> Compare {
    let (target, rest) = word.split_once('(').unwrap_or_else(|| panic!("{word}"));
    let (key, rest) = rest.split_once(')').unwrap_or_else(|| panic!("{word}"));
    let line = format!("_ {key}");
    let (key, range_end) = Words::new(&line).keys();
    let (result, value) = rest.split_at(1);
    let number = || value.parse().unwrap_or_else(|_| panic!("{word}"));
    let (target, union) = match target {
        "version" => (0, TargetUnion::Version(number())),
        "create" => (1, TargetUnion::CreateRevision(number())),
        "mod" => (2, TargetUnion::ModRevision(number())),
        "value" => (3, TargetUnion::Value(Bytes::copy_from_slice(value.as_bytes()))),
        "lease" => (4, TargetUnion::Lease(number())),
        other => panic!("unknown target {other}"),
    };
    let result = "=><!".find(result).unwrap_or_else(|| panic!("{word}")) as i32;
    Compare { result, target, key, range_end, target_union: Some(union) }
}

fn operation(line: &str) -> Request {
    let words = Words::new(line);
    let (key, range_end) = words.keys();
    match words.plain.first().copied().unwrap_or_default() {
        "put" => Request::RequestPut(PutRequest {
            key,
            value: Bytes::copy_from_slice(words.plain.get(2).copied().unwrap_or_default().as_bytes()),
            lease: words.number("lease"),
            prev_kv: words.has("prev"),
            ignore_value: words.has("ignore_value"),
            ignore_lease: words.has("ignore_lease"),
        }),
        "del" => Request::RequestDeleteRange(DeleteRangeRequest { key, range_end, prev_kv: words.has("prev") }),
        "get" => {
            let target = words.options.get("by").copied().unwrap_or("key");
            let target = ["key", "version", "create", "mod", "value"].iter().position(|t| *t == target);
            let by = i32::from(words.has("by"));
            Request::RequestRange(RangeRequest {
                key,
                range_end,
                revision: words.number("rev"),
                limit: words.number("limit"),
                sort_target: target.map_or(99, |t| t as i32),
                sort_order: if words.has("desc") {
                    2
                } else if words.has("unordered") {
                    0
                } else {
                    by
                },
                keys_only: words.has("keys_only"),
                count_only: words.has("count_only"),
                min_mod_revision: words.number("min_mod"),
                max_mod_revision: words.number("max_mod"),
                min_create_revision: words.number("min_create"),
                max_create_revision: words.number("max_create"),
                serializable: false,
            })
        }
        other => panic!("unknown operation {other}"),
    }
}

fn show_txn(response: &TxnResponse) -> String {
    let header = response.header.map_or(0, |h| h.revision);
    let shown: Vec<_> = response.responses.iter().filter_map(|r| r.response.as_ref()).map(show).collect();
    format!("{} at {header}: [{}]", if response.succeeded { "then" } else { "else" }, shown.join("; "))
}

fn show(response: &Response) -> String {
    let show_all = |kvs: &[KeyValue]| kvs.iter().map(show_kv).collect::<Vec<_>>().join(" ");
    match response {
        Response::ResponseRange(r) => show_range(r),
        Response::ResponsePut(r) => {
            let prev = r.prev_kv.as_ref().map(|kv| format!(" before {}", show_kv(kv))).unwrap_or_default();
            format!("put at {}{prev}", r.header.map_or(0, |h| h.revision))
        }
        Response::ResponseDeleteRange(r) => {
            let prev = if r.prev_kvs.is_empty() { String::new() } else { format!(" before {}", show_all(&r.prev_kvs)) };
            format!("deleted {} at {}{prev}", r.deleted, r.header.map_or(0, |h| h.revision))
        }
        Response::ResponseTxn(r) => format!("({})", show_txn(r)),
    }
}

fn show_range(response: &RangeResponse) -> String {
    let kvs: Vec<_> = response.kvs.iter().map(show_kv).collect();
    let more = if response.more { ", more" } else { "" };
    let at = response.header.map_or(0, |h| h.revision);
    format!("[{}] of {}{more} at {at}", kvs.join(" "), response.count)
}

/// `key=value(create,mod,version)`, and the lease.
fn show_kv(kv: &KeyValue) -> String {
    let lease = if kv.lease == 0 { String::new() } else { format!(",lease {}", kv.lease) };
    let (key, value) = (String::from_utf8_lossy(&kv.key), String::from_utf8_lossy(&kv.value));
    format!("{key}={value}({},{},{}{lease})", kv.create_revision, kv.mod_revision, kv.version)
}
