package main

import (
	"context"
	"fmt"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// runErrors sends what no client library would, on a plain connection.
func runErrors(w *world) {
	ctx, cancel := within(60)
	defer cancel()
	rng := func(name string, r *pb.RangeRequest) {
		resp, err := w.kv().Range(ctx, r)
		w.step(name, resp, err)
	}
	put := func(name string, r *pb.PutRequest) {
		resp, err := w.kv().Put(ctx, r)
		w.step(name, resp, err)
	}
	key := []byte("e")
	rng("range without key", &pb.RangeRequest{})
	rng("range without key but with end", &pb.RangeRequest{RangeEnd: []byte("b")})
	rng("range in the future", &pb.RangeRequest{Key: key, Revision: 1_000_000})
	rng("range compacted", &pb.RangeRequest{Key: key, Revision: 1})
	rng("range at a negative revision", &pb.RangeRequest{Key: key, Revision: -1})
	rng("range with unknown order", &pb.RangeRequest{Key: key, SortOrder: 99})
	rng("range with unknown target", &pb.RangeRequest{Key: key, SortTarget: 99})
	rng("range with negative limit", &pb.RangeRequest{Key: []byte("r/"), RangeEnd: []byte("r0"), Limit: -1})
	put("put without key", &pb.PutRequest{Value: key})
	put("put with unknown lease", &pb.PutRequest{Key: key, Lease: 4711})
	put("put with negative lease", &pb.PutRequest{Key: key, Lease: -1})
	put("ignore_value with value", &pb.PutRequest{Key: key, Value: key, IgnoreValue: true})
	put("ignore_value of missing", &pb.PutRequest{Key: key, IgnoreValue: true})
	put("ignore_lease with lease", &pb.PutRequest{Key: key, Lease: 77, IgnoreLease: true})
	put("ignore_lease of missing", &pb.PutRequest{Key: key, IgnoreLease: true})
	put("too large", &pb.PutRequest{Key: key, Value: make([]byte, 1_600_000)})
	put("far too large", &pb.PutRequest{Key: key, Value: make([]byte, 3<<20)})
	put("largest", &pb.PutRequest{Key: key, Value: make([]byte, 1_500_000)})
	del, err := w.kv().DeleteRange(ctx, &pb.DeleteRangeRequest{})
	w.step("delete without key", del, err)
	w.badTxns(ctx)
	w.del("delete the largest", "e")
	for _, method := range []string{"/etcdserverpb.KV/Nothing", "/no.such.Service/Method", "/etcdserverpb.Nothing/Method"} {
		err := w.conn.Invoke(ctx, method, &pb.RangeRequest{}, &pb.RangeResponse{})
		w.step("unknown method "+method, nil, err)
	}
	old := metadata.AppendToOutgoingContext(ctx, "client-api-version", "not a version")
	resp, err := w.kv().Range(old, &pb.RangeRequest{Key: key})
	w.step("bad client-api-version", resp, err)
	leader := metadata.AppendToOutgoingContext(ctx, "hasleader", "true")
	resp, err = w.kv().Range(leader, &pb.RangeRequest{Key: key})
	w.step("hasleader", resp, err)
	// Field 7 of RangeRequest is a bool; here it holds bytes.
	malformed := &pb.RangeRequest{Key: key}
	malformed.ProtoReflect().SetUnknown([]byte{0x3a, 0x7f})
	_, err = w.kv().Range(ctx, malformed)
	w.step("malformed message", map[string]bool{"refused": err != nil}, nil)
	unknown := &pb.RangeRequest{Key: []byte("a")}
	unknown.ProtoReflect().SetUnknown([]byte{0xfa, 0x3f, 0x01, 0x00})
	resp, err = w.kv().Range(ctx, unknown)
	w.step("unknown field", resp, err)
}

func (w *world) badTxns(ctx context.Context) {
	txn := func(name string, r *pb.TxnRequest) {
		resp, err := w.kv().Txn(ctx, r)
		w.step(name, resp, err)
	}
	put := func(key string) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key)}}}
	}
	txn("txn: put without key", &pb.TxnRequest{Success: []*pb.RequestOp{put("")}})
	txn("txn: bad put in the branch not taken", &pb.TxnRequest{Failure: []*pb.RequestOp{put("")}})
	txn("txn: compare without key", &pb.TxnRequest{Compare: []*pb.Compare{{}}})
	txn("txn: empty operation", &pb.TxnRequest{Success: []*pb.RequestOp{{}}})
	txn("txn: range without key", &pb.TxnRequest{Success: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{}}}}})
	txn("txn: delete without key", &pb.TxnRequest{Success: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{}}}}})
	txn("txn: sort option", &pb.TxnRequest{Success: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte("a"), SortOrder: 99}}}}})
	txn("txn: ignore_value with value", &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: []byte("e"), Value: []byte("x"), IgnoreValue: true}}}}})
	txn("txn: duplicate", &pb.TxnRequest{Success: []*pb.RequestOp{put("d"), put("d")}})
	txn("txn: duplicate in failure", &pb.TxnRequest{Failure: []*pb.RequestOp{put("d"), put("d")}})
	nested := &pb.TxnRequest{Success: []*pb.RequestOp{put("deep")}}
	for range 4 {
		nested = &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestTxn{RequestTxn: nested}}}}
	}
	txn("txn: nested five deep", nested)
	bad := proto.Clone(nested).(*pb.TxnRequest)
	bad.Compare = []*pb.Compare{{Key: []byte(strings.Repeat("k", 10)), Result: 5}}
	txn("txn: nested with a strange compare", bad)
}

func runLeaseErrors(w *world) {
	ctx, cancel := within(60)
	defer cancel()
	for _, lease := range [][2]int64{{3001, 9_000_000_001}, {3002, 9_000_000_000}, {3003, 0}, {3004, -5}, {-3005, 10}, {77, 10}} {
		resp, err := w.lease().LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: lease[0], TTL: lease[1]})
		w.step(fmt.Sprintf("grant id %d ttl %d", lease[0], lease[1]), resp, err)
	}
	revoke, err := w.lease().LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: 4711})
	w.step("revoke unknown", revoke, err)
	revoke, err = w.lease().LeaseRevoke(ctx, &pb.LeaseRevokeRequest{})
	w.step("revoke nothing", revoke, err)
	ttl, err := w.lease().LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: 4711, Keys: true})
	w.step("time to live of unknown", ttl, err)
	_, err = w.cli.KeepAliveOnce(ctx, 4711)
	w.step("keep alive once of unknown", nil, err)
}

func runCluster(w *world) {
	ctx, cancel := within(60)
	defer cancel()
	for _, linearizable := range []bool{true, false} {
		list, err := w.cluster().MemberList(ctx, &pb.MemberListRequest{Linearizable: linearizable})
		if err == nil {
			for _, m := range list.Members {
				same := m.ID == list.Header.MemberId
				m.ID, m.PeerURLs, m.ClientURLs = 0, m.PeerURLs[:0], m.ClientURLs[:0]
				w.step("the member is the one that answers", same, nil)
			}
		}
		w.step("member list", list, err)
	}
	remove, err := w.cluster().MemberRemove(ctx, &pb.MemberRemoveRequest{ID: 4711})
	w.step("remove an unknown member", remove, err)
	update, err := w.cluster().MemberUpdate(ctx, &pb.MemberUpdateRequest{ID: 4711, PeerURLs: []string{"http://127.0.0.1:1"}})
	w.step("update an unknown member", update, err)
	promote, err := w.cluster().MemberPromote(ctx, &pb.MemberPromoteRequest{ID: 4711})
	w.step("promote an unknown member", promote, err)
	add, err := w.cluster().MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: []string{"not a url"}})
	w.step("add a member with a bad URL", add, err)
	status, err := pb.NewAuthClient(w.conn).AuthStatus(ctx, &pb.AuthStatusRequest{})
	w.step("auth status", status, err)
	token, err := pb.NewAuthClient(w.conn).Authenticate(ctx, &pb.AuthenticateRequest{Name: "x", Password: "y"})
	w.step("authenticate", token, err)
}

func runRangeStream(w *world) {
	get := func(name, key string, opts ...clientv3.OpOption) {
		ctx, cancel := within(10)
		defer cancel()
		stream, err := w.cli.GetStream(ctx, key, opts...)
		if err != nil {
			w.step(name, nil, err)
			return
		}
		// Kvs arrive in pieces of the server's choosing; header and count only at the end.
		sum, early := &pb.RangeResponse{}, false
		for piece := range stream {
			if piece.Err() != nil {
				w.step(name, nil, piece.Err())
				return
			}
			early = early || sum.Header != nil
			proto.Merge(sum, piece.RangeResponse)
		}
		w.step(name, map[string]any{"sum": w.message(sum), "pieces after the header": early}, nil)
	}
	prefix := clientv3.WithPrefix()
	get("one key", "a")
	get("missing key", "missing")
	get("prefix", "r/", prefix)
	get("limit", "r/", prefix, clientv3.WithLimit(2))
	get("keys only", "many/", prefix, clientv3.WithKeysOnly())
	get("count only", "many/", prefix, clientv3.WithCountOnly())
	get("at a revision", "r/", prefix, clientv3.WithRev(w.revision()-1))
	get("serializable", "r/", prefix, clientv3.WithSerializable())
	get("future", "r/", prefix, clientv3.WithRev(1_000_000))
	get("compacted", "r/", prefix, clientv3.WithRev(1))
	get("sorted by key", "r/", prefix, clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend))
	get("sorted by key, descending", "r/", prefix, clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
	get("sorted by value", "r/", prefix, clientv3.WithSort(clientv3.SortByValue, clientv3.SortAscend))
	get("min mod revision", "r/", prefix, clientv3.WithMinModRev(5))
	get("no key", "")
	for i := range 3 {
		w.put(fmt.Sprintf("long value %d", i), fmt.Sprintf("stream/%d", i), string(make([]byte, 1_000_000)))
	}
	get("three long values", "stream/", prefix)
	w.del("delete the long values", "stream/", prefix)
}
