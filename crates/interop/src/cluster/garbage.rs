//! Garbage and oversize bodies to the peer port: Lockgate answers as real etcd does, and the cluster goes on.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::{
    super::{load::number, normal, server::Program},
    Ending, Scenario, World,
    group::Group,
    traffic::Traffic,
    verdict,
};

pub(super) const SCENARIOS: &[Scenario] =
    &[Scenario { name: "refused: garbage on the peer port", short: true, run: garbage }];

/// An empty message is to member 0, for which Lockgate refuses it with 403; real etcd answers 500 and hangs up.
const KNOWN: [&str; 1] = ["raft empty"];

struct Request {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    headers: Headers,
    body: fn() -> Vec<u8>,
}

#[derive(Clone, Copy)]
enum Headers {
    None,
    /// As a member of the cluster sends them.
    Right,
    WrongCluster,
    WrongTo,
    OldVersion,
}

const fn request(
    name: &'static str,
    method: &'static str,
    path: &'static str,
    headers: Headers,
    body: fn() -> Vec<u8>,
) -> Request {
    Request { name, method, path, headers, body }
}

fn nothing() -> Vec<u8> {
    Vec::new()
}

fn noise() -> Vec<u8> {
    (0..2000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn oversize() -> Vec<u8> {
    vec![0xff; 4 << 20]
}

/// The length of a message, and too little of it.
fn cut_short() -> Vec<u8> {
    [&100_u64.to_be_bytes()[..], b"abc"].concat()
}

fn huge_length() -> Vec<u8> {
    [&u64::MAX.to_be_bytes()[..], &[0; 100]].concat()
}

fn over_limit() -> Vec<u8> {
    [&((64_u64 << 20) + 1).to_be_bytes()[..], &[0; 100]].concat()
}

fn bad_message() -> Vec<u8> {
    [&4_u64.to_be_bytes()[..], &[0xff; 4]].concat()
}

/// A heartbeat where a snapshot belongs: type 8, to and from 1.
fn other_message() -> Vec<u8> {
    [&6_u64.to_be_bytes()[..], &[0x08, 0x08, 0x10, 0x01, 0x18, 0x01]].concat()
}

use Headers::{None as Bare, OldVersion, Right, WrongCluster, WrongTo};

const REQUESTS: &[Request] = &[
    request("raft by GET", "GET", "/raft", Right, nothing),
    request("raft without headers", "POST", "/raft", Bare, noise),
    request("raft of another cluster", "POST", "/raft", WrongCluster, noise),
    request("raft of an old version", "POST", "/raft", OldVersion, noise),
    request("raft noise", "POST", "/raft", Right, noise),
    request("raft empty", "POST", "/raft", Right, nothing),
    request("raft oversize", "POST", "/raft", Right, oversize),
    request("snapshot by GET", "GET", "/raft/snapshot", Right, nothing),
    request("snapshot of another cluster", "POST", "/raft/snapshot", WrongCluster, noise),
    request("snapshot empty", "POST", "/raft/snapshot", Right, nothing),
    request("snapshot noise", "POST", "/raft/snapshot", Right, noise),
    request("snapshot cut short", "POST", "/raft/snapshot", Right, cut_short),
    request("snapshot of huge length", "POST", "/raft/snapshot", Right, huge_length),
    request("snapshot over the limit", "POST", "/raft/snapshot", Right, over_limit),
    request("snapshot of a bad message", "POST", "/raft/snapshot", Right, bad_message),
    request("snapshot of another message", "POST", "/raft/snapshot", Right, other_message),
    request("stream by POST", "POST", "/raft/stream/message/1", Right, nothing),
    request("stream of no type", "GET", "/raft/stream/other/1", Right, nothing),
    request("stream from no id", "GET", "/raft/stream/message/zzz", Right, nothing),
    request("stream from a stranger", "GET", "/raft/stream/message/1234", Right, nothing),
    request("stream msgappv2 from a stranger", "GET", "/raft/stream/msgapp/1234", Right, nothing),
    request("stream to another", "GET", "/raft/stream/message/1234", WrongTo, nothing),
    request("stream of another cluster", "GET", "/raft/stream/message/1234", WrongCluster, nothing),
    request("probing", "GET", "/raft/probing", Bare, nothing),
    request("members by POST", "POST", "/members", Bare, noise),
    request("promote by GET", "GET", "/members/promote/1", Bare, nothing),
    request("promote no id", "POST", "/members/promote/zzz", Bare, nothing),
    request("promote nobody", "POST", "/members/promote/1234", Bare, nothing),
    request("leases noise", "POST", "/leases", Bare, noise),
    request("leases internal noise", "POST", "/leases/internal", Bare, noise),
    request("leases by GET", "GET", "/leases", Bare, nothing),
    request("hashkv noise", "GET", "/members/hashkv", Bare, noise),
    request("hashkv by POST", "POST", "/members/hashkv", Bare, noise),
    request("downgrade by POST", "POST", "/downgrade/enabled", Bare, noise),
    request("version by POST", "POST", "/version", Bare, noise),
    request("no such path", "GET", "/no/such", Bare, nothing),
];

fn garbage(world: &World, base: &Path) -> Result<Ending> {
    let found = |program: &Program, name: &str| {
        let dir = base.join(name);
        std::fs::create_dir_all(&dir)?;
        Group::found(&dir, &[program, program, program], &[])
    };
    let (etcd, mut ours) = (found(&world.etcd, "etcd")?, found(&Program::lockgate(&world.ours.path), "ours")?);
    let traffic = Traffic::start(ours.endpoints(), world.seed)?;
    let mut different = 0;
    for (n, request) in REQUESTS.iter().enumerate() {
        // To leader and followers in turn. A promotion to the leader: a follower of etcd forwards it, one of
        // Lockgate leaves that to the client.
        let to = |group: &Group| if request.path.contains("promote") { group.leader() } else { Ok(n % 3) };
        let (left, right) = (send(&etcd, to(&etcd)?, request)?, send(&ours, to(&ours)?, request)?);
        if left != right && !KNOWN.contains(&request.name) {
            different += 1;
            println!("DIFFERENT, {}:\n    etcd: {left}\n    ours: {right}", request.name);
        }
    }
    no_http(&ours)?;
    let figures = verdict::finish(traffic, &mut ours)?;
    if different > 0 {
        bail!("{different} of {} answers differ", REQUESTS.len());
    }
    Ok(Ending::Well(format!(
        "{} of {} requests answered as by etcd; {figures}",
        REQUESTS.len() - KNOWN.len(),
        REQUESTS.len()
    )))
}

/// Bytes that are no request at all.
fn no_http(group: &Group) -> Result<()> {
    for member in &group.members {
        for bytes in
            [&b"\0\x01\x02 garbage\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxxxxxxxxx", b"\x16\x03\x01\x02\x00"]
        {
            let mut stream = TcpStream::connect(member.peer_endpoint())?;
            stream.set_read_timeout(Some(Duration::from_millis(300)))?;
            // It may hang up before all is written.
            let _ = stream.write_all(bytes);
            let _ = stream.read(&mut [0; 100]);
        }
    }
    Ok(())
}

/// Status and body, without what differs by nature.
fn send(group: &Group, n: usize, request: &Request) -> Result<String> {
    let status = group.members[n].ask("/v3/maintenance/status", &json!({}))?;
    let (cluster, id) = (number(&status["header"]["cluster_id"])?, number(&status["header"]["member_id"])?);
    let headers = headers(request.headers, cluster, id);
    let body = (request.body)();
    let head = format!(
        "{} {} HTTP/1.1\r\nHost: {}\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n",
        request.method,
        request.path,
        group.members[n].peer_endpoint(),
        body.len()
    );
    let mut stream = TcpStream::connect(group.members[n].peer_endpoint())?;
    stream.set_read_timeout(Some(harness::wait_max()))?;
    stream.set_write_timeout(Some(harness::wait_max()))?;
    // A server that refuses a body may hang up before all of it is written.
    let _ = stream.write_all(&[head.as_bytes(), &body].concat());
    let answer = receive(&mut stream);
    show(&String::from_utf8_lossy(&answer)).with_context(|| format!("{} of {}", request.name, group.members[n].name))
}

/// As far as the answer says it goes: etcd may keep the connection for seconds after it.
fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    while !is_whole(&String::from_utf8_lossy(&answer)) {
        match stream.read(&mut piece) {
            Ok(length) if length > 0 => answer.extend_from_slice(&piece[..length]),
            _ => break,
        }
    }
    answer
}

fn is_whole(answer: &str) -> bool {
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

fn headers(headers: Headers, cluster: u64, id: u64) -> String {
    let all = |cluster: u64, to: u64, version: &str| {
        format!(
            "X-Etcd-Cluster-ID: {cluster:x}\r\nX-Server-From: 1234\r\nX-Server-Version: {version}\r\n\
             X-Min-Cluster-Version: 3.0.0\r\nX-Raft-To: {to:x}\r\n"
        )
    };
    match headers {
        Headers::None => String::new(),
        Headers::Right => all(cluster, id, "3.7.3"),
        Headers::WrongCluster => all(1, id, "3.7.3"),
        Headers::WrongTo => all(cluster, 1, "3.7.3"),
        Headers::OldVersion => all(cluster, id, "2.0.0"),
    }
}

fn show(answer: &str) -> Result<String> {
    if answer.is_empty() {
        return Ok("hung up".to_owned());
    }
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no end of its head")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    let body: Vec<String> = body.lines().map(|line| normal::text(line, "<none>")).collect();
    let body = body.join("\n");
    // Why a message cannot be read each says in words of its own, in brackets; clocks differ.
    let cut = ["failed to decode raft message (", "\"Now\":"]
        .iter()
        .find_map(|mark| body.find(mark).map(|at| at + mark.len()));
    Ok(format!("{status} {}", body[..cut.unwrap_or(body.len())].trim()))
}
