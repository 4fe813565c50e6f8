package main

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"google.golang.org/grpc/status"
)

// runServices uses the locks and elections that the server runs for its clients. The leases have fixed ids, since keys
// hold them.
func runServices(w *world) {
	ctx, cancel := within(60)
	defer cancel()
	for _, id := range []int64{0x51, 0x52, 0x53} {
		_, err := w.lease().LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: id, TTL: 600})
		w.step("lease", nil, err)
	}
	w.lockService(ctx, v3lockpb.NewLockClient(w.conn))
	w.electionService(ctx, v3electionpb.NewElectionClient(w.conn))
	for _, id := range []int64{0x51, 0x52, 0x53} {
		_, err := w.lease().LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: id})
		w.step("revoke", nil, err)
	}
	w.get("nothing left", "service", clientv3.WithPrefix())
}

// waiting returns when so many keys stand below a prefix: whoever waits has its key there.
func (w *world) waiting(ctx context.Context, prefix string, count int64) {
	for found := int64(-1); found != count && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if resp, err := w.cli.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly()); err == nil {
			found = resp.Count
		}
	}
}

func (w *world) lockService(ctx context.Context, locks v3lockpb.LockClient) {
	name := []byte("service/lock")
	first, err := locks.Lock(ctx, &v3lockpb.LockRequest{Name: name, Lease: 0x51})
	w.step("lock", first, err)
	type outcome struct {
		resp *v3lockpb.LockResponse
		err  error
	}
	got := make(chan outcome)
	go func() {
		resp, err := locks.Lock(ctx, &v3lockpb.LockRequest{Name: name, Lease: 0x52})
		got <- outcome{resp, err}
	}()
	w.waiting(ctx, "service/lock/", 2)
	// A waiter that gives up leaves no key behind.
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	_, err = locks.Lock(short, &v3lockpb.LockRequest{Name: name, Lease: 0x53})
	cancel()
	w.step("lock until the client gives up", status.Code(err).String(), nil)
	w.waiting(ctx, "service/lock/", 2)
	unlocked, err := locks.Unlock(ctx, &v3lockpb.UnlockRequest{Key: first.GetKey()})
	w.step("unlock", unlocked, err)
	second := <-got
	w.step("the next has it", second.resp, second.err)
	// Its key goes while it waits, with its lease.
	go func() {
		resp, err := locks.Lock(ctx, &v3lockpb.LockRequest{Name: name, Lease: 0x53})
		got <- outcome{resp, err}
	}()
	w.waiting(ctx, "service/lock/", 2)
	_, err = w.cli.Delete(ctx, "service/lock/53")
	w.step("take a waiter's key away", nil, err)
	unlocked, err = locks.Unlock(ctx, &v3lockpb.UnlockRequest{Key: second.resp.GetKey()})
	w.step("unlock second", unlocked, err)
	third := <-got
	w.step("lock without a key", third.resp, third.err)
}

func (w *world) electionService(ctx context.Context, elections v3electionpb.ElectionClient) {
	name := []byte("service/election")
	observed, err := elections.Observe(ctx, &v3electionpb.LeaderRequest{Name: name})
	w.step("observe", nil, err)
	if err != nil {
		return
	}
	see := func(step string) {
		resp, err := observed.Recv()
		w.step(step, resp, err)
	}
	first, err := elections.Campaign(ctx, &v3electionpb.CampaignRequest{Name: name, Lease: 0x51, Value: []byte("one")})
	w.step("campaign", first, err)
	see("observe the first leader")
	type outcome struct {
		resp *v3electionpb.CampaignResponse
		err  error
	}
	won := make(chan outcome)
	go func() {
		resp, err := elections.Campaign(ctx, &v3electionpb.CampaignRequest{Name: name, Lease: 0x52, Value: []byte("two")})
		won <- outcome{resp, err}
	}()
	w.waiting(ctx, "service/election/", 2)
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	_, err = elections.Campaign(short, &v3electionpb.CampaignRequest{Name: name, Lease: 0x53, Value: []byte("three")})
	cancel()
	w.step("campaign until the client gives up", status.Code(err).String(), nil)
	w.waiting(ctx, "service/election/", 2)
	proclaimed, err := elections.Proclaim(ctx, &v3electionpb.ProclaimRequest{Leader: first.GetLeader(), Value: []byte("one again")})
	w.step("proclaim", proclaimed, err)
	see("observe the proclamation")
	leader, err := elections.Leader(ctx, &v3electionpb.LeaderRequest{Name: name})
	w.step("leader", leader, err)
	resigned, err := elections.Resign(ctx, &v3electionpb.ResignRequest{Leader: first.GetLeader()})
	w.step("resign", resigned, err)
	second := <-won
	w.step("the next leads", second.resp, second.err)
	see("observe the second leader")
	_, err = elections.Proclaim(ctx, &v3electionpb.ProclaimRequest{Leader: first.GetLeader(), Value: []byte("late")})
	w.step("proclaim after resigning", nil, err)
	resigned, err = elections.Resign(ctx, &v3electionpb.ResignRequest{Leader: second.resp.GetLeader()})
	w.step("resign second", resigned, err)
	_, err = elections.Leader(ctx, &v3electionpb.LeaderRequest{Name: name})
	w.step("no leader", nil, err)
}
