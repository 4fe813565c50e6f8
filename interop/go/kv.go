package main

import (
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func (w *world) put(name, key, value string, opts ...clientv3.OpOption) {
	ctx, cancel := within(10)
	defer cancel()
	resp, err := w.cli.Put(ctx, key, value, opts...)
	w.step(name, (*pb.PutResponse)(resp), err)
}

func (w *world) get(name, key string, opts ...clientv3.OpOption) {
	ctx, cancel := within(10)
	defer cancel()
	resp, err := w.cli.Get(ctx, key, opts...)
	w.step(name, (*pb.RangeResponse)(resp), err)
}

func (w *world) del(name, key string, opts ...clientv3.OpOption) {
	ctx, cancel := within(10)
	defer cancel()
	resp, err := w.cli.Delete(ctx, key, opts...)
	w.step(name, (*pb.DeleteRangeResponse)(resp), err)
}

func runKV(w *world) {
	w.get("get from the empty store", "a")
	w.get("all of the empty store", "", clientv3.WithPrefix())
	w.put("first put", "a", "1")
	w.put("overwrite", "a", "2")
	w.put("overwrite with prev_kv", "a", "3", clientv3.WithPrevKV())
	w.put("new key with prev_kv", "b", "1", clientv3.WithPrevKV())
	w.put("empty value", "empty", "")
	w.put("bytes that are no text", "bin\x00\xff", "\x00\x01\xfe")
	w.put("long value", "long", string(make([]byte, 100_000)))
	w.get("get", "a")
	w.get("get bytes", "bin\x00\xff")
	w.get("get missing", "missing")
	w.get("get serializable", "a", clientv3.WithSerializable())
	w.get("get at an old revision", "a", clientv3.WithRev(2))
	w.get("get at a revision before its time", "b", clientv3.WithRev(2))

	ctx, cancel := within(10)
	defer cancel()
	lease, err := w.cli.Lease.Grant(ctx, 1000)
	if err == nil {
		w.alias(lease.ID, "LEASE")
		_, err = w.cli.Revoke(ctx, lease.ID)
	}
	w.step("a lease and its end change no revision", nil, err)
	_, err = w.lease().LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: 77, TTL: 1000})
	w.step("lease with an id", nil, err)
	w.put("put with lease", "leased", "1", clientv3.WithLease(77))
	w.put("ignore_lease keeps it", "leased", "2", clientv3.WithIgnoreLease())
	w.put("ignore_value keeps it", "leased", "", clientv3.WithIgnoreValue(), clientv3.WithPrevKV(), clientv3.WithLease(77))
	w.get("get leased", "leased")
	w.put("put without lease takes it off", "leased", "3", clientv3.WithPrevKV())
	w.get("get no longer leased", "leased")

	w.del("delete", "b")
	w.del("delete missing", "b")
	w.put("put again starts at version 1", "b", "2")
	w.get("get again", "b")
	w.del("delete with prev_kv", "b", clientv3.WithPrevKV())
	for i := range 5 {
		w.put(fmt.Sprintf("put del/%d", i), fmt.Sprintf("del/%d", i), "x")
	}
	w.del("delete a range", "del/1", clientv3.WithRange("del/3"), clientv3.WithPrevKV())
	w.del("delete an empty range", "del/1", clientv3.WithRange("del/3"))
	w.del("delete a backward range", "del/4", clientv3.WithRange("del/0"))
	w.del("delete a prefix", "del/", clientv3.WithPrefix())
	w.get("deleted prefix", "del/", clientv3.WithPrefix())
	w.put("put z", "z", "1")
	w.del("delete from key", "y", clientv3.WithFromKey(), clientv3.WithPrevKV())
}

func runRange(w *world) {
	// Create order, modification order, key order and value order all differ.
	for _, kv := range [][2]string{{"r/3", "c"}, {"r/1", "e"}, {"r/5", "a"}, {"r/2", "d"}, {"r/4", "b"}, {"r/1", "f"}, {"r/5", "a"}} {
		w.put("put "+kv[0], kv[0], kv[1])
	}
	prefix := clientv3.WithPrefix()
	w.get("prefix", "r/", prefix)
	w.get("range", "r/2", clientv3.WithRange("r/4"))
	w.get("from key", "r/4", clientv3.WithFromKey(), clientv3.WithLimit(2))
	w.get("backward range", "r/4", clientv3.WithRange("r/2"))
	w.get("whole store, count only", "", prefix, clientv3.WithCountOnly())
	w.get("keys only", "r/", prefix, clientv3.WithKeysOnly())
	w.get("count only", "r/", prefix, clientv3.WithCountOnly())
	w.get("count only with limit", "r/", prefix, clientv3.WithCountOnly(), clientv3.WithLimit(1))
	for _, limit := range []int64{1, 4, 5, 6} {
		w.get(fmt.Sprintf("limit %d", limit), "r/", prefix, clientv3.WithLimit(limit))
	}
	targets := map[string]clientv3.SortTarget{"key": clientv3.SortByKey, "version": clientv3.SortByVersion,
		"create": clientv3.SortByCreateRevision, "mod": clientv3.SortByModRevision, "value": clientv3.SortByValue}
	for _, target := range []string{"key", "version", "create", "mod", "value"} {
		w.get("sort by "+target+" ascending", "r/", prefix, clientv3.WithSort(targets[target], clientv3.SortAscend))
		w.get("sort by "+target+" descending", "r/", prefix, clientv3.WithSort(targets[target], clientv3.SortDescend))
		w.get("sort by "+target+", no order", "r/", prefix, clientv3.WithSort(targets[target], clientv3.SortNone))
	}
	w.get("sort with limit", "r/", prefix, clientv3.WithSort(clientv3.SortByValue, clientv3.SortDescend), clientv3.WithLimit(2))
	ctx, cancel := within(10)
	defer cancel()
	all, err := w.cli.Get(ctx, "r/", prefix, clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
	if err != nil || len(all.Kvs) != 5 {
		w.step("no five keys to go on with", all != nil, err)
		return
	}
	mid, rev := all.Kvs[2], all.Header.Revision
	w.get("min mod revision", "r/", prefix, clientv3.WithMinModRev(mid.ModRevision))
	w.get("max mod revision", "r/", prefix, clientv3.WithMaxModRev(mid.ModRevision))
	w.get("min create revision", "r/", prefix, clientv3.WithMinCreateRev(mid.CreateRevision))
	w.get("max create revision", "r/", prefix, clientv3.WithMaxCreateRev(mid.CreateRevision))
	w.get("min and max mod revision with limit", "r/", prefix, clientv3.WithMinModRev(mid.ModRevision),
		clientv3.WithMaxModRev(rev-1), clientv3.WithLimit(1))
	w.get("max mod revision, count only", "r/", prefix, clientv3.WithMaxModRev(mid.ModRevision), clientv3.WithCountOnly())
	for back := int64(1); back <= 7; back += 2 {
		w.get(fmt.Sprintf("prefix %d revisions ago", back), "r/", prefix, clientv3.WithRev(rev-back))
	}
	w.get("old revision with limit and sort", "r/", prefix, clientv3.WithRev(rev-2), clientv3.WithLimit(2),
		clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
	w.get("first created", "r/", clientv3.WithFirstCreate()...)
	w.get("last modified", "r/", clientv3.WithLastRev()...)
}
