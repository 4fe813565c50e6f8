package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// runConcurrency uses the recipes that sit on top of the API: sessions, locks, elections, software transactions.
func runConcurrency(w *world) {
	ctx, cancel := within(90)
	defer cancel()
	first, err := concurrency.NewSession(w.cli, concurrency.WithTTL(30))
	if err != nil {
		w.step("session", nil, err)
		return
	}
	second, err := concurrency.NewSession(w.cli, concurrency.WithTTL(30))
	if err != nil {
		w.step("second session", nil, err)
		return
	}
	w.alias(first.Lease(), "FIRST")
	w.alias(second.Lease(), "SECOND")
	w.mutex(ctx, first, second)
	w.election(ctx, first, second)
	w.stm(ctx)
	w.step("close first", nil, first.Close())
	w.step("close second", nil, second.Close())
	w.get("nothing left of locks", "lock/", clientv3.WithPrefix())
}

func (w *world) mutex(ctx context.Context, first, second *concurrency.Session) {
	a, b := concurrency.NewMutex(first, "lock"), concurrency.NewMutex(second, "lock")
	w.step("lock", nil, a.Lock(ctx))
	w.get("the lock's key", "lock/", clientv3.WithPrefix())
	w.step("try lock of a held lock", nil, b.TryLock(ctx))
	got := make(chan error)
	go func() { got <- b.Lock(ctx) }()
	// It waits with a key of its own; revisions depend on who comes first.
	for waiting := int64(0); waiting < 2 && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		if resp, err := w.cli.Get(ctx, "lock/", clientv3.WithPrefix(), clientv3.WithCountOnly()); err == nil {
			waiting = resp.Count
		}
	}
	w.step("unlock", nil, a.Unlock(ctx))
	w.step("lock goes to the next", nil, <-got)
	w.step("key of the second", b.Key(), nil)
	w.txn("owner", cmps(b.IsOwner()), ops(clientv3.OpGet(b.Key())), nil)
	w.step("unlock second", nil, b.Unlock(ctx))
}

func (w *world) election(ctx context.Context, first, second *concurrency.Session) {
	a, b := concurrency.NewElection(first, "elect"), concurrency.NewElection(second, "elect")
	_, err := a.Leader(ctx)
	w.step("no leader yet", nil, err)
	w.step("campaign", nil, a.Campaign(ctx, "one"))
	won := make(chan error)
	go func() { won <- b.Campaign(ctx, "two") }()
	leader, err := a.Leader(ctx)
	if err == nil {
		w.step("leader", string(leader.Kvs[0].Value), nil)
	}
	w.step("proclaim", nil, a.Proclaim(ctx, "one again"))
	w.step("resign", nil, a.Resign(ctx))
	w.step("second wins", nil, <-won)
	leader, err = b.Leader(ctx)
	if err == nil {
		w.step("second leads", string(leader.Kvs[0].Value), nil)
	}
	w.step("second resigns", nil, b.Resign(ctx))
}

// stm has five clients add to two counters until each has done ten additions.
func (w *world) stm(ctx context.Context) {
	var wg sync.WaitGroup
	failed := make(chan error, 50)
	for range 5 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 10 {
				_, err := concurrency.NewSTM(w.cli, func(stm concurrency.STM) error {
					x, _ := strconv.Atoi(stm.Get("stm/x"))
					y, _ := strconv.Atoi(stm.Get("stm/y"))
					stm.Put("stm/x", fmt.Sprint(x+1))
					stm.Put("stm/y", fmt.Sprint(y+2))
					return nil
				}, concurrency.WithAbortContext(ctx))
				if err != nil {
					failed <- err
				}
			}
		}()
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		w.step("a transaction failed", nil, err)
	}
	resp, err := w.cli.Get(ctx, "stm/", clientv3.WithPrefix())
	if err != nil {
		w.step("counters", nil, err)
		return
	}
	counters := map[string]any{}
	for _, kv := range resp.Kvs {
		counters[string(kv.Key)] = map[string]any{"value": string(kv.Value), "version": kv.Version}
	}
	w.step("counters", counters, nil)
}
