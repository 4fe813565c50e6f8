"""Runs a fixed series of requests through the public etcd3gw package, which speaks to the JSON gateway, and prints one
JSON line per step, so that two servers can be compared."""

import json
import sys
import threading

import etcd3gw
from etcd3gw import exceptions
from etcd3gw.utils import _encode

CHOSEN_BY_SERVERS = {
    "cluster_id", "member_id", "ID", "leader", "dbSize", "dbSizeInUse", "raftIndex", "raftAppliedIndex",
    "storageVersion", "peerURLs", "clientURLs",
}


def clean(value):
    if isinstance(value, dict):
        is_status = "raftTerm" in value
        return {k: "…" if k in CHOSEN_BY_SERVERS or (is_status and k == "version") else clean(v)
                for k, v in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value


def step(name, action):
    line = {"step": name}
    try:
        line["answer"] = clean(action())
    except exceptions.Etcd3Exception as error:
        line["error"] = {"kind": type(error).__name__, "detail": detail(str(getattr(error, "detail_text", error)))}
    print(json.dumps(line, ensure_ascii=False), flush=True)


def detail(text):
    # As JSON, because Go's spaces in it vary from build to build.
    try:
        return json.loads(text)
    except ValueError:
        return text


def main(host, port):
    c = etcd3gw.client(host=host, port=int(port), api_path="/v3/", timeout=20)
    step("status", c.status)
    step("members", lambda: [member.get("name") for member in c.members()])
    step("get missing", lambda: c.get("a"))
    step("put", lambda: c.put("a", "1"))
    step("put text", lambda: c.put("ä", "ö"))
    step("get", lambda: c.get("a", metadata=True))
    step("get text", lambda: c.get("ä"))
    step("create", lambda: c.create("new", "1"))
    step("create again", lambda: c.create("new", "2"))
    step("replace", lambda: c.replace("new", "1", "2"))
    step("replace with wrong value", lambda: c.replace("new", "1", "3"))
    for key, value in [("p/2", "b"), ("p/1", "c"), ("p/3", "a")]:
        step("put " + key, lambda: c.put(key, value))
    step("prefix", lambda: c.get_prefix("p/"))
    step("prefix sorted", lambda: c.get_prefix("p/", sort_order="descend", sort_target="value"))
    step("all", c.get_all)
    step("empty key", lambda: c.put("", "1"))
    step("future revision", lambda: c.post(c.get_url("/kv/range"), json={"key": _encode("a"), "revision": 1000}))
    step("txn", lambda: c.transaction({
        "compare": [{"key": _encode("a"), "result": "EQUAL", "target": "VALUE", "value": _encode("1")}],
        "success": [{"request_put": {"key": _encode("t"), "value": _encode("1")}},
                    {"request_range": {"key": _encode("t")}}],
        "failure": [{"request_range": {"key": _encode("a")}}]}))
    step("txn with a key twice", lambda: c.transaction({
        "success": [{"request_put": {"key": _encode("t")}}, {"request_put": {"key": _encode("t")}}]}))
    watch(c)
    lease(c)
    lock(c)
    step("delete", lambda: c.delete("a"))
    step("delete missing", lambda: c.delete("a"))
    step("delete prefix", lambda: c.delete_prefix("p/"))
    step("compaction", lambda: c.post(c.get_url("/kv/compaction"), json={"revision": 3, "physical": True}))
    step("compacted", lambda: c.post(c.get_url("/kv/range"), json={"key": _encode("a"), "revision": 2}))
    step("what is left", c.get_all)


def watch(c):
    events, cancel = c.watch_prefix("w/")
    # A watch that does not answer must end the run.
    timer = threading.Timer(15, cancel)
    timer.start()
    for value in ("1", "2"):
        step("put for the watch", lambda: c.put("w/1", value))
    step("delete for the watch", lambda: c.delete("w/1"))
    step("watch", lambda: [next(events, "nothing came") for _ in range(3)])
    timer.cancel()
    cancel()


def lease(c):
    held = c.lease(ttl=100)
    step("put with lease", lambda: c.put("leased", "1", lease=held))
    step("keys of the lease", held.keys)
    step("refresh", held.refresh)
    step("time to live", lambda: 0 < held.ttl() <= 100)
    step("revoke", held.revoke)
    step("revoke again", held.revoke)
    step("key is gone", lambda: c.get("leased"))
    step("refresh when gone", held.refresh)


def lock(c):
    first = c.lock("l", ttl=60)
    second = c.lock("l", ttl=60)
    step("lock", first.acquire)
    step("lock is held", second.acquire)
    step("is acquired", first.is_acquired)
    step("unlock", first.release)
    step("lock by the second", second.acquire)
    step("unlock by the second", second.release)


if __name__ == "__main__":
    main(*sys.argv[1].split(":"))
