// Runs a fixed series of requests through etcd's own Go client and prints one JSON line per step, without what differs
// between two runs by nature (ids, sizes, times), so that the lines of two servers can be compared.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// world is what every part of the scenario works with.
type world struct {
	*recorder
	endpoint string
	cli      *clientv3.Client
	// conn is a plain connection, to see codes and texts as the server sent them.
	conn *grpc.ClientConn
}

func (w *world) kv() pb.KVClient                   { return pb.NewKVClient(w.conn) }
func (w *world) lease() pb.LeaseClient             { return pb.NewLeaseClient(w.conn) }
func (w *world) maintenance() pb.MaintenanceClient { return pb.NewMaintenanceClient(w.conn) }
func (w *world) cluster() pb.ClusterClient         { return pb.NewClusterClient(w.conn) }

// within bounds one request, so that a server that does not answer is a finding instead of a hang.
func within(seconds int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: scenario HOST:PORT")
		os.Exit(2)
	}
	endpoint := os.Args[1]
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second})
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed to make a client:", err)
		os.Exit(1)
	}
	conn, err := grpc.NewClient("passthrough:///"+endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed to make a connection:", err)
		os.Exit(1)
	}
	w := &world{recorder: newRecorder(), endpoint: endpoint, cli: cli, conn: conn}
	// Parts build on each other's keys and revisions: the order is part of the scenario. Leases with ids of the
	// server's choosing come last, as an id is part of what hashkv sums up.
	for _, part := range []struct {
		name string
		run  func(*world)
	}{
		{"kv", runKV}, {"range", runRange}, {"txn", runTxn}, {"compare", runCompare}, {"watch", runWatch},
		{"compaction", runCompaction}, {"lease", runLease}, {"maintenance", runMaintenance}, {"errors", runErrors},
		{"lease-errors", runLeaseErrors}, {"cluster", runCluster}, {"rangestream", runRangeStream},
		{"auth", runAuth},
		{"services", runServices}, {"concurrency", runConcurrency}, {"frames", runFrames},
	} {
		w.part = part.name
		part.run(w)
	}
}
