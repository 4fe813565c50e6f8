package main

import (
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func (w *world) txn(name string, cmps []clientv3.Cmp, then, otherwise []clientv3.Op) {
	ctx, cancel := within(10)
	defer cancel()
	resp, err := w.cli.Txn(ctx).If(cmps...).Then(then...).Else(otherwise...).Commit()
	w.step(name, (*pb.TxnResponse)(resp), err)
}

func ops(ops ...clientv3.Op) []clientv3.Op     { return ops }
func cmps(cmps ...clientv3.Cmp) []clientv3.Cmp { return cmps }

func runTxn(w *world) {
	put, get, del := clientv3.OpPut, clientv3.OpGet, clientv3.OpDelete
	w.txn("empty", nil, nil, nil)
	w.txn("puts without condition", nil, ops(put("t/a", "1"), put("t/b", "1")), nil)
	w.txn("read only", nil, ops(get("t/a"), get("t/", clientv3.WithPrefix(), clientv3.WithCountOnly())), nil)
	w.txn("reads see earlier writes of the txn", nil,
		ops(put("t/c", "1"), get("t/c"), del("t/a", clientv3.WithPrevKV()), get("t/", clientv3.WithPrefix())), nil)
	w.txn("delete then put of other keys", nil, ops(del("t/b"), put("t/d", "1", clientv3.WithPrevKV())), nil)
	w.txn("delete of nothing", nil, ops(del("t/nothing")), nil)
	w.txn("failed condition, nothing else", cmps(clientv3.Compare(clientv3.Value("t/c"), "=", "no")), ops(put("t/c", "2")), nil)
	w.txn("failed condition, else", cmps(clientv3.Compare(clientv3.Value("t/c"), "=", "no")),
		ops(put("t/c", "2")), ops(put("t/else", "1"), get("t/c")))
	w.txn("two conditions", cmps(clientv3.Compare(clientv3.Value("t/c"), "=", "1"), clientv3.Compare(clientv3.Version("t/c"), "=", 1)),
		ops(put("t/c", "3")), nil)
	inner := clientv3.OpTxn(cmps(clientv3.Compare(clientv3.Version("t/c"), ">", 0)), ops(put("t/in", "1"), get("t/in")), ops(put("t/out", "1")))
	w.txn("nested", nil, ops(put("t/before", "1"), inner, get("t/", clientv3.WithPrefix(), clientv3.WithKeysOnly())), nil)
	failing := clientv3.OpTxn(cmps(clientv3.Compare(clientv3.Version("t/never"), ">", 0)), nil, ops(del("t/in", clientv3.WithPrevKV())))
	w.txn("nested, else branch", nil, ops(failing), nil)
	w.txn("nested twice", nil, ops(clientv3.OpTxn(nil, ops(put("t/1", "1"), clientv3.OpTxn(nil, ops(put("t/2", "1"), get("t/1")), nil)), nil)), nil)
	w.txn("put with lease", nil, ops(put("t/leased", "1", clientv3.WithLease(77)), get("t/leased")), nil)
	w.txn("put with unknown lease", nil, ops(put("t/x", "1"), put("t/y", "1", clientv3.WithLease(4711))), nil)
	w.get("a failed txn left nothing", "t/x")
	w.txn("ignore_value of missing key", nil, ops(put("t/x", "1"), put("t/y", "", clientv3.WithIgnoreValue())), nil)
	w.get("that failed txn left nothing", "t/x")
	w.txn("same key twice", nil, ops(put("t/x", "1"), put("t/x", "2")), nil)
	w.txn("same key in both branches", nil, ops(put("t/both", "1")), ops(put("t/both", "2")))
	w.txn("put into a deleted range", nil, ops(del("t/", clientv3.WithPrefix()), put("t/x", "1")), nil)
	w.txn("put before a deleted range", nil, ops(put("t/x", "1"), del("t/x", clientv3.WithRange("t/y"))), nil)
	w.txn("same key twice, one nested", nil, ops(put("t/x", "1"), clientv3.OpTxn(nil, ops(put("t/x", "2")), nil)), nil)
	w.txn("same key in both branches of a nested", nil, ops(clientv3.OpTxn(nil, ops(put("t/n", "2")), ops(put("t/n", "3")))), nil)
	w.txn("overlapping deletes", nil, ops(del("t/o", clientv3.WithPrefix()), del("t/ou")), nil)
	var many []clientv3.Op
	for i := range 128 {
		many = append(many, put(fmt.Sprintf("many/%03d", i), "x"))
	}
	w.txn("128 operations", nil, many, nil)
	w.txn("129 operations", nil, append(many, put("many/129", "x")), nil)
	w.txn("129 operations in else", nil, nil, append(many, put("many/129", "x")))
	var conditions []clientv3.Cmp
	for i := range 129 {
		conditions = append(conditions, clientv3.Compare(clientv3.Version(fmt.Sprintf("many/%03d", i)), ">", -1))
	}
	w.txn("129 conditions", conditions, nil, nil)
	w.get("what came of it", "many/", clientv3.WithPrefix(), clientv3.WithLimit(3))
	w.txn("read at an old revision", nil, ops(get("a", clientv3.WithRev(2)), put("t/old", "1")), nil)
	w.txn("read at a future revision", nil, ops(get("a", clientv3.WithRev(1_000_000))), nil)
	w.txn("write and read at a future revision", nil, ops(put("t/f", "1"), get("a", clientv3.WithRev(1_000_000))), nil)
	w.get("future read left nothing", "t/f")
}

func runCompare(w *world) {
	ctx, cancel := within(20)
	defer cancel()
	w.put("put c/1", "c/1", "m")
	w.put("put c/2", "c/2", "n", clientv3.WithLease(77))
	w.put("put c/2 again", "c/2", "o", clientv3.WithLease(77))
	now, err := w.cli.Get(ctx, "c/2")
	if err != nil || len(now.Kvs) != 1 {
		w.step("no key to compare", nil, err)
		return
	}
	kv := now.Kvs[0]
	results := []pb.Compare_CompareResult{pb.Compare_EQUAL, pb.Compare_GREATER, pb.Compare_LESS, pb.Compare_NOT_EQUAL}
	compare := func(name string, c *pb.Compare) {
		resp, err := w.kv().Txn(ctx, &pb.TxnRequest{Compare: []*pb.Compare{c}})
		w.step(name, resp, err)
	}
	for _, result := range results {
		for delta := int64(-1); delta <= 1; delta++ {
			name := func(target string) string { return fmt.Sprintf("%s %v %+d", target, result, delta) }
			compare(name("version"), &pb.Compare{Key: []byte("c/2"), Result: result, Target: pb.Compare_VERSION,
				TargetUnion: &pb.Compare_Version{Version: kv.Version + delta}})
			compare(name("create"), &pb.Compare{Key: []byte("c/2"), Result: result, Target: pb.Compare_CREATE,
				TargetUnion: &pb.Compare_CreateRevision{CreateRevision: kv.CreateRevision + delta}})
			compare(name("mod"), &pb.Compare{Key: []byte("c/2"), Result: result, Target: pb.Compare_MOD,
				TargetUnion: &pb.Compare_ModRevision{ModRevision: kv.ModRevision + delta}})
			compare(name("value"), &pb.Compare{Key: []byte("c/2"), Result: result, Target: pb.Compare_VALUE,
				TargetUnion: &pb.Compare_Value{Value: []byte{byte('o' + delta)}}})
			compare(name("lease"), &pb.Compare{Key: []byte("c/2"), Result: result, Target: pb.Compare_LEASE,
				TargetUnion: &pb.Compare_Lease{Lease: kv.Lease + delta}})
			compare(name("version of missing"), &pb.Compare{Key: []byte("c/none"), Result: result, Target: pb.Compare_VERSION,
				TargetUnion: &pb.Compare_Version{Version: delta}})
			compare(name("range version"), &pb.Compare{Key: []byte("c/"), RangeEnd: []byte("c0"), Result: result,
				Target: pb.Compare_VERSION, TargetUnion: &pb.Compare_Version{Version: 1 + delta}})
			compare(name("range value"), &pb.Compare{Key: []byte("c/"), RangeEnd: []byte("c0"), Result: result,
				Target: pb.Compare_VALUE, TargetUnion: &pb.Compare_Value{Value: []byte{byte('n' + delta)}}})
			compare(name("empty range version"), &pb.Compare{Key: []byte("none/"), RangeEnd: []byte("none0"), Result: result,
				Target: pb.Compare_VERSION, TargetUnion: &pb.Compare_Version{Version: delta}})
		}
		compare(fmt.Sprintf("value of missing %v", result), &pb.Compare{Key: []byte("c/none"), Result: result,
			Target: pb.Compare_VALUE, TargetUnion: &pb.Compare_Value{Value: []byte{}}})
		compare(fmt.Sprintf("from key create %v", result), &pb.Compare{Key: []byte("c/"), RangeEnd: []byte{0}, Result: result,
			Target: pb.Compare_CREATE, TargetUnion: &pb.Compare_CreateRevision{CreateRevision: 1}})
		compare(fmt.Sprintf("no target value %v", result), &pb.Compare{Key: []byte("c/1"), Result: result, Target: pb.Compare_VALUE})
		compare(fmt.Sprintf("no target version %v", result), &pb.Compare{Key: []byte("c/1"), Result: result, Target: pb.Compare_VERSION})
	}
	compare("unknown result", &pb.Compare{Key: []byte("c/1"), Result: 9, Target: pb.Compare_VERSION, TargetUnion: &pb.Compare_Version{Version: 1}})
	compare("unknown target", &pb.Compare{Key: []byte("c/1"), Target: 9})
}
