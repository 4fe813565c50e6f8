package main

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func (w *world) hashKV(name string, rev int64) {
	ctx, cancel := within(10)
	defer cancel()
	resp, err := w.maintenance().HashKV(ctx, &pb.HashKVRequest{Revision: rev})
	w.step(name, resp, err)
}

func runCompaction(w *world) {
	ctx, cancel := within(30)
	defer cancel()
	now := w.revision()
	w.hashKV("hash of all", 0)
	w.hashKV("hash at an old revision", 10)
	w.hashKV("hash at revision 1", 1)
	w.hashKV("hash at a future revision", now+100)
	compact := func(name string, rev int64, opts ...clientv3.CompactOption) {
		resp, err := w.cli.Compact(ctx, rev, opts...)
		w.step(name, (*pb.CompactionResponse)(resp), err)
	}
	compact("compact the future", now+1)
	compact("compact to 10", 10, clientv3.WithCompactPhysical())
	compact("compact to 10 again", 10)
	compact("compact to less", 5)
	compact("compact to 0", 0)
	compact("compact to less than 0", -1)
	w.get("read before the compaction", "a", clientv3.WithRev(9))
	w.get("read at the compaction", "a", clientv3.WithRev(10))
	w.get("read after the compaction", "a", clientv3.WithRev(11))
	w.hashKV("hash before the compaction", 9)
	w.hashKV("hash at the compaction", 10)
	w.hashKV("hash of all after the compaction", 0)
	w.watch("watch from a compacted revision", 1, nil, "a", clientv3.WithRev(3))
	w.watch("watch from the compacted revision itself", 1, nil, "r/", clientv3.WithPrefix(), clientv3.WithRev(10))
	w.txn("txn that reads what is compacted", nil, ops(clientv3.OpPut("t/compacted", "1"), clientv3.OpGet("a", clientv3.WithRev(3))), nil)
	w.txn("read-only txn of what is compacted", nil, ops(clientv3.OpGet("a", clientv3.WithRev(3))), nil)
	w.get("the failed txn left nothing", "t/compacted")
	compact("compact to now", now, clientv3.WithCompactPhysical())
	w.hashKV("hash of all after the second compaction", 0)
	w.get("all that is left", "", clientv3.WithPrefix(), clientv3.WithRev(now), clientv3.WithKeysOnly())
	w.put("put after compaction", "a", "after")
}
