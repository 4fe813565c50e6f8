package main

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

// collect gathers events until there are n. How a server cuts them into answers is its own affair.
func (w *world) collect(ch clientv3.WatchChan, n int) []any {
	events := []any{}
	for timeout := time.After(10 * time.Second); len(events) < n; {
		select {
		case resp, ok := <-ch:
			if !ok {
				return append(events, "channel closed")
			}
			for _, ev := range resp.Events {
				events = append(events, w.message((*mvccpb.Event)(ev)))
			}
			if resp.Canceled {
				return append(events, map[string]any{"canceled": fmt.Sprint(resp.Err()), "compact_revision": resp.CompactRevision})
			}
		case <-timeout:
			return append(events, "nothing came for 10 seconds")
		}
	}
	return events
}

func (w *world) watch(name string, n int, do func(), key string, opts ...clientv3.OpOption) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ch := w.cli.Watch(ctx, key, append(opts, clientv3.WithCreatedNotify())...)
	created := <-ch
	if created.Created && do != nil {
		do()
	}
	w.step(name, map[string]any{"created": created.Created, "events": w.collect(ch, n)}, created.Err())
}

func runWatch(w *world) {
	ctx, cancel := within(60)
	defer cancel()
	start, err := w.cli.Put(ctx, "w/1", "1")
	if err != nil {
		w.step("no key to watch", nil, err)
		return
	}
	rev := start.Header.Revision
	w.cli.Put(ctx, "w/1", "2")
	w.cli.Put(ctx, "w/2", "1")
	w.cli.Delete(ctx, "w/1")
	w.cli.Txn(ctx).Then(clientv3.OpPut("w/3", "1"), clientv3.OpPut("w/4", "1"), clientv3.OpDelete("w/2")).Commit()
	past, prefix := clientv3.WithRev(rev), clientv3.WithPrefix()
	w.watch("from a past revision", 7, nil, "w/", prefix, past)
	w.watch("from a past revision with prev_kv", 7, nil, "w/", prefix, past, clientv3.WithPrevKV())
	w.watch("from the middle", 5, nil, "w/", prefix, clientv3.WithRev(rev+2))
	w.watch("one key from the past", 3, nil, "w/1", past)
	w.watch("range from the past", 4, nil, "w/2", clientv3.WithRange("w/5"), past)
	w.watch("from key, from the past", 4, nil, "w/2", clientv3.WithFromKey(), past)
	w.watch("without puts", 2, nil, "w/", prefix, past, clientv3.WithFilterPut())
	w.watch("without deletes", 5, nil, "w/", prefix, past, clientv3.WithFilterDelete())
	w.watch("from now", 2, func() { w.cli.Put(ctx, "w/now", "1"); w.cli.Delete(ctx, "w/now") }, "w/", prefix, clientv3.WithPrevKV())
	w.watch("past and present", 10, func() { w.cli.Put(ctx, "w/9", "1") }, "w/", prefix, past)
	w.watch("from a future revision", 1, func() {
		for i := range 4 {
			w.cli.Put(ctx, "w/future", fmt.Sprint(i))
		}
	}, "w/", prefix, clientv3.WithRev(w.revision()+3))
	w.watch("delete range in one revision", 4, func() { w.cli.Delete(ctx, "w/", prefix) }, "w/", prefix)
	w.manyWatches(ctx)
	w.rawWatch(ctx, rev)
	w.fragments(ctx)
}

func (w *world) revision() int64 {
	ctx, cancel := within(10)
	defer cancel()
	resp, err := w.cli.Get(ctx, "any")
	if err != nil {
		return 0
	}
	return resp.Header.Revision
}

// manyWatches has 100 watches on one stream, of which some overlap.
func (w *world) manyWatches(ctx context.Context) {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	var channels []clientv3.WatchChan
	for i := range 100 {
		ch := w.cli.Watch(watching, fmt.Sprintf("mw/%d", i%50), clientv3.WithCreatedNotify())
		<-ch
		channels = append(channels, ch)
	}
	for i := range 50 {
		w.cli.Put(ctx, fmt.Sprintf("mw/%d", i), "x")
	}
	got := []any{}
	for _, ch := range channels {
		got = append(got, w.collect(ch, 1)...)
	}
	w.step("100 watches", got, nil)
}

// rawWatch looks at what the client library hides: ids, cancelling, progress.
func (w *world) rawWatch(ctx context.Context, rev int64) {
	stream, err := pb.NewWatchClient(w.conn).Watch(ctx)
	if err != nil {
		w.step("raw stream", nil, err)
		return
	}
	ask := func(name string, req *pb.WatchRequest) {
		err := stream.Send(req)
		if err != nil {
			w.step(name, nil, err)
			return
		}
		resp, err := stream.Recv()
		w.step(name, resp, err)
	}
	create := func(c *pb.WatchCreateRequest) *pb.WatchRequest {
		return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: c}}
	}
	stop := func(id int64) *pb.WatchRequest {
		return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}}
	}
	ask("raw create", create(&pb.WatchCreateRequest{Key: []byte("raw")}))
	ask("raw create second", create(&pb.WatchCreateRequest{Key: []byte("raw2")}))
	ask("raw create with id", create(&pb.WatchCreateRequest{Key: []byte("raw3"), WatchId: 7}))
	ask("raw create with id in use", create(&pb.WatchCreateRequest{Key: []byte("raw3"), WatchId: 7}))
	ask("raw cancel", stop(1))
	ask("raw create after cancel", create(&pb.WatchCreateRequest{Key: []byte("raw4")}))
	ask("raw backward range", create(&pb.WatchCreateRequest{Key: []byte("raw5"), RangeEnd: []byte("raw1")}))
	ask("raw progress", &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
	ask("raw empty key is the first key", create(&pb.WatchCreateRequest{RangeEnd: []byte{0}}))
	w.cli.Put(ctx, "raw", "1")
	for i := range 2 {
		resp, err := stream.Recv()
		if resp != nil {
			// Which of the two watches hears first is open.
			resp.WatchId = 0
		}
		w.step(fmt.Sprintf("raw event %d", i), resp, err)
	}
	// To cancel what is not there has no answer; the next one is for the next request.
	stream.Send(stop(99))
	ask("raw create after cancelling nothing", create(&pb.WatchCreateRequest{Key: []byte("raw6")}))
}

// fragments reads more than fits into one answer.
func (w *world) fragments(ctx context.Context) {
	first := w.revision() + 1
	for i := range 4 {
		_, err := w.cli.Put(ctx, fmt.Sprintf("frag/%d", i), string(make([]byte, 900_000)))
		if err != nil {
			w.step("fragment put", nil, err)
		}
	}
	w.fragmented(ctx, "fragments", first, 4, false)
	// With the previous values, one revision alone is too much for one answer.
	one := w.revision() + 1
	long := string(make([]byte, 700_000))
	_, err := w.cli.Txn(ctx).Then(clientv3.OpPut("frag/0", long), clientv3.OpPut("frag/1", long)).Commit()
	w.step("fragment txn", nil, err)
	w.fragmented(ctx, "fragments of one revision", one, 2, true)
	w.del("delete long values", "frag/", clientv3.WithPrefix())
}

func (w *world) fragmented(ctx context.Context, name string, rev int64, n int, prevKV bool) {
	stream, err := pb.NewWatchClient(w.conn).Watch(ctx)
	if err != nil {
		w.step(name, nil, err)
		return
	}
	stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte("frag/"), RangeEnd: []byte("frag0"), StartRevision: rev, Fragment: true, PrevKv: prevKV}}})
	answers, events, largest := []any{}, 0, 0
	for events < n {
		resp, err := stream.Recv()
		if err != nil {
			w.step(name, answers, err)
			return
		}
		events += len(resp.Events)
		largest = max(largest, proto.Size(resp))
		answers = append(answers, map[string]any{"created": resp.Created, "events": len(resp.Events), "fragment": resp.Fragment})
	}
	w.step(name, map[string]any{"answers": answers, "none over 2 MiB": largest <= 2<<20}, nil)
}
