package main

import (
	"bytes"
	"context"
	"slices"
	"sort"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func runLease(w *world) {
	ctx, cancel := within(60)
	defer cancel()
	grant := func(name string, id, ttl int64) {
		resp, err := w.lease().LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: id, TTL: ttl})
		w.step(name, resp, err)
	}
	// Remaining times depend on the clock; that they are sane does not.
	ttl := func(name string, id int64, keys bool) {
		resp, err := w.lease().LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: id, Keys: keys})
		if resp != nil && resp.TTL > 0 && resp.TTL <= resp.GrantedTTL {
			resp.TTL = 1
		}
		if resp != nil {
			slices.SortFunc(resp.Keys, bytes.Compare)
		}
		w.step(name, resp, err)
	}
	list := func(name string) {
		resp, err := w.lease().LeaseLeases(ctx, &pb.LeaseLeasesRequest{})
		if resp != nil {
			sort.Slice(resp.Leases, func(i, j int) bool { return resp.Leases[i].ID < resp.Leases[j].ID })
		}
		w.step(name, resp, err)
	}
	list("list")
	grant("grant", 1001, 500)
	grant("grant another", 1002, 600)
	grant("grant the shortest", 1003, 1)
	grant("grant an id in use", 1001, 500)
	w.put("attach", "l/1", "1", clientv3.WithLease(1001))
	w.put("attach second", "l/2", "1", clientv3.WithLease(1001))
	w.put("attach to another", "l/3", "1", clientv3.WithLease(1002))
	ttl("time to live", 1001, false)
	ttl("time to live with keys", 1001, true)
	w.put("move to another lease", "l/2", "2", clientv3.WithLease(1002))
	ttl("keys after the move", 1001, true)
	ttl("keys of the other", 1002, true)
	w.put("detach", "l/3", "2")
	ttl("keys after detaching", 1002, true)
	w.del("delete an attached key", "l/2")
	ttl("keys after deleting", 1002, true)
	list("list of three or four")
	resp, err := w.cli.KeepAliveOnce(ctx, 1001)
	if err == nil {
		w.step("keep alive once", map[string]any{"ID": resp.ID, "TTL": resp.TTL}, nil)
	} else {
		w.step("keep alive once", nil, err)
	}
	w.keepAlive(ctx)
	w.watch("revoke deletes its keys", 1, func() {
		resp, err := w.lease().LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: 1001})
		w.step("revoke", resp, err)
	}, "l/", clientv3.WithPrefix(), clientv3.WithPrevKV())
	ttl("time to live after revoking", 1001, true)
	grant("grant the id again", 1001, 500)
	w.expiry(ctx)
	revoke, err := w.cli.Revoke(ctx, 1002)
	w.step("revoke without keys", (*pb.LeaseRevokeResponse)(revoke), err)
	list("list at the end")
	w.hashKV("hash with leases", 0)
}

func (w *world) keepAlive(ctx context.Context) {
	stream, err := w.lease().LeaseKeepAlive(ctx)
	if err != nil {
		w.step("keep alive stream", nil, err)
		return
	}
	for _, ask := range []struct {
		name string
		id   int64
	}{{"keep alive", 1002}, {"keep alive unknown", 4711}, {"keep alive again", 1001}} {
		err := stream.Send(&pb.LeaseKeepAliveRequest{ID: ask.id})
		if err != nil {
			w.step(ask.name, nil, err)
			continue
		}
		resp, err := stream.Recv()
		w.step(ask.name, resp, err)
	}
}

// expiry waits for the end of a lease of the shortest time.
func (w *world) expiry(ctx context.Context) {
	w.lease().LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: 1010, TTL: 2})
	start := time.Now()
	w.watch("expiry deletes keys in one revision", 4, func() {
		w.cli.Txn(ctx).Then(clientv3.OpPut("x/1", "1", clientv3.WithLease(1010)), clientv3.OpPut("x/2", "1", clientv3.WithLease(1010))).Commit()
	}, "x/", clientv3.WithPrefix())
	took := time.Since(start)
	w.step("expiry took its time", map[string]bool{"not too early": took >= 1500*time.Millisecond, "not too late": took < 8*time.Second}, nil)
	resp, err := w.lease().LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: 1010, Keys: true})
	w.step("time to live after expiry", resp, err)
	_, err = w.cli.KeepAliveOnce(ctx, 1010)
	w.step("keep alive once after expiry", nil, err)
	w.put("put with an expired lease", "x/3", "1", clientv3.WithLease(1010))
}
