// Puts a key, but only with a cluster feature on. Ends with 0 if it was put, with 1 if the feature is off, and with 2 if
// the server would ignore what is required, as a real etcd does.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	key     = "require-feature"
	feature = "AtomicIncrement"
	// question is what no etcd answers.
	question = "/etcdserverpb.Maintenance/FeatureGateStatus"
)

// require lets every call of a client carry the requirement, and fail if the server does not echo it. A stream has its
// headers with its first answer: look for the echo there, with its Header method.
func require(feature string) []grpc.DialOption {
	unary := func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if method == question {
			return call(ctx, method, req, reply, conn, opts...)
		}
		var header metadata.MD
		ctx = metadata.AppendToOutgoingContext(ctx, key, feature)
		if err := call(ctx, method, req, reply, conn, append(opts, grpc.Header(&header))...); err != nil {
			return err
		}
		if !slices.Contains(header.Get(key), feature) {
			return fmt.Errorf("%s may have been done without %s: the server did not echo %s", method, feature, key)
		}
		return nil
	}
	stream := func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		return open(metadata.AppendToOutgoingContext(ctx, key, feature), desc, conn, method, opts...)
	}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(unary), grpc.WithChainStreamInterceptor(stream)}
}

// heeds asks the question. All its fields may be left out, so empty messages do, and no generated code is needed.
func heeds(ctx context.Context, cli *clientv3.Client) error {
	return cli.ActiveConnection().Invoke(ctx, question, &emptypb.Empty{}, &emptypb.Empty{})
}

func main() {
	endpoint := os.Getenv("ENDPOINT") // such as 127.0.0.1:2379
	cli, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialOptions: require(feature)})
	if err != nil {
		end(2, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := heeds(ctx, cli); err != nil {
		end(2, fmt.Errorf("%s would ignore %s: %w", endpoint, key, err))
	}
	if _, err := cli.Put(ctx, "greeting", "hello"); err != nil {
		end(1, err)
	}
	fmt.Println("put, with", feature, "on")
}

func end(code int, err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(code)
}
