package main

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// runAuth makes users, turns authentication on, and off at its end.
func runAuth(w *world) {
	ctx, cancel := within(90)
	defer cancel()
	w.makeUsers(ctx)
	tokens := map[string]string{"nobody": "", "rubbish": "rubbish", "stranger": "abcdefghijklmnop.1"}
	for _, name := range []string{"root", "alice", "bob"} {
		resp, err := w.auth().Authenticate(ctx, &pb.AuthenticateRequest{Name: name, Password: name})
		if err != nil {
			w.step("log in "+name, nil, err)
			continue
		}
		tokens[name] = resp.Token
		w.step("log in "+name, map[string]any{"token": len(resp.Token) > 17}, nil)
	}
	w.logins(ctx)
	for _, who := range []string{"nobody", "rubbish", "stranger", "bob", "alice", "root"} {
		w.everything(metadata.NewOutgoingContext(ctx, metadata.Pairs("token", tokens[who])), who)
	}
	as := metadata.NewOutgoingContext(ctx, metadata.Pairs("authorization", "Bearer "+tokens["alice"]))
	got, err := w.kv().Range(as, &pb.RangeRequest{Key: []byte("auth/a")})
	w.step("a bearer", got, err)
	root := metadata.NewOutgoingContext(ctx, metadata.Pairs("token", tokens["root"]))
	w.throughClients(ctx, root)
	_, err = w.auth().UserDelete(root, &pb.AuthUserDeleteRequest{Name: "bob"})
	w.step("bob goes", nil, err)
	got, err = w.kv().Range(metadata.NewOutgoingContext(ctx, metadata.Pairs("token", tokens["bob"])),
		&pb.RangeRequest{Key: []byte("auth/a")})
	w.step("bob's token", got, err)
	off, err := w.auth().AuthDisable(root, &pb.AuthDisableRequest{})
	w.step("disable", off, err)
	got, err = w.kv().Range(ctx, &pb.RangeRequest{Key: []byte("auth/a")})
	w.step("nobody has to say", got, err)
	w.hashKV("hash after users", 0)
}

func (w *world) auth() pb.AuthClient { return pb.NewAuthClient(w.conn) }

func (w *world) makeUsers(ctx context.Context) {
	a := w.auth()
	for _, name := range []string{"root", "alice", "bob"} {
		resp, err := a.UserAdd(ctx, &pb.AuthUserAddRequest{Name: name, Password: name})
		w.step("user "+name, resp, err)
		role, err := a.RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: name})
		w.step("role "+name, role, err)
		grant, err := a.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: name, Role: name})
		w.step("grant "+name, grant, err)
	}
	perm := func(name, role string, kind authpb.Permission_Type, key, end string) {
		p := &authpb.Permission{PermType: kind, Key: []byte(key), RangeEnd: []byte(end)}
		resp, err := a.RoleGrantPermission(ctx, &pb.AuthRoleGrantPermissionRequest{Name: role, Perm: p})
		w.step(name, resp, err)
	}
	perm("alice writes", "alice", authpb.Permission_READWRITE, "auth/a", "auth/b")
	perm("bob reads", "bob", authpb.Permission_READ, "auth/a", "")
	perm("upside down", "bob", authpb.Permission_READ, "b", "a")
	perm("no such role", "carol", authpb.Permission_READ, "b", "")
	w.put("before", "auth/a", "1")
	w.put("before, another's", "auth/z", "1")
	resp, err := a.AuthEnable(ctx, &pb.AuthEnableRequest{})
	w.step("enable", resp, err)
}

func (w *world) logins(ctx context.Context) {
	for _, try := range []struct{ step, name, password string }{
		{"a wrong password", "alice", "bob"}, {"no password", "alice", ""}, {"no such user", "carol", "carol"}, {"no name", "", ""},
	} {
		_, err := w.auth().Authenticate(ctx, &pb.AuthenticateRequest{Name: try.name, Password: try.password})
		w.step(try.step, nil, err)
	}
}

// everything asks for one of each kind, as somebody.
func (w *world) everything(ctx context.Context, who string) {
	step := func(name string, answer proto.Message, err error) { w.step(who+": "+name, answer, err) }
	kv, key, other := w.kv(), []byte("auth/a"), []byte("auth/z")
	get, err := kv.Range(ctx, &pb.RangeRequest{Key: key})
	step("get", get, err)
	get, err = kv.Range(ctx, &pb.RangeRequest{Key: other, Serializable: true})
	step("get another's", get, err)
	put, err := kv.Put(ctx, &pb.PutRequest{Key: key, Value: []byte("2"), PrevKv: true})
	step("put", put, err)
	put, err = kv.Put(ctx, &pb.PutRequest{Key: other, Value: []byte("2")})
	step("put another's", put, err)
	txn, err := kv.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}}})
	step("txn that reads", txn, err)
	txn, err = kv.Txn(ctx, &pb.TxnRequest{Failure: []*pb.RequestOp{
		{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: other}}}}})
	step("txn that would write another's", txn, err)
	_, err = kv.Compact(ctx, &pb.CompactionRequest{Revision: 1})
	step("compact", nil, err)
	_, err = w.lease().LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: 77, TTL: 500})
	step("grant", nil, err)
	leases, err := w.lease().LeaseLeases(ctx, &pb.LeaseLeasesRequest{})
	if leases != nil {
		leases.Leases = nil
	}
	step("leases", leases, err)
	revoke, err := w.lease().LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: 77})
	step("revoke", revoke, err)
	_, err = w.cluster().MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
	step("members", nil, err)
	_, err = w.maintenance().Status(ctx, &pb.StatusRequest{})
	step("status", nil, err)
	_, err = w.maintenance().HashKV(ctx, &pb.HashKVRequest{})
	step("hash", nil, err)
	users, err := w.auth().UserList(ctx, &pb.AuthUserListRequest{})
	step("users", users, err)
	user, err := w.auth().UserGet(ctx, &pb.AuthUserGetRequest{Name: "alice"})
	step("alice", user, err)
	role, err := w.auth().RoleGet(ctx, &pb.AuthRoleGetRequest{Role: "bob"})
	step("role of bob", role, err)
	status, err := w.auth().AuthStatus(ctx, &pb.AuthStatusRequest{})
	step("auth status", status, err)
	w.watchAs(ctx, who, key)
	w.watchAs(ctx, who, other)
}

func (w *world) watchAs(ctx context.Context, who string, key []byte) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stream, err := pb.NewWatchClient(w.conn).Watch(ctx)
	if err != nil {
		w.step(who+": watch "+string(key), nil, err)
		return
	}
	create := &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: key}}
	_ = stream.Send(&pb.WatchRequest{RequestUnion: create})
	resp, err := stream.Recv()
	w.step(who+": watch "+string(key), resp, err)
}

// throughClients has etcd's own client log in, and again when its token is gone.
func (w *world) throughClients(ctx, asRoot context.Context) {
	config := func(name, password string) clientv3.Config {
		return clientv3.Config{Endpoints: []string{w.endpoint}, DialTimeout: 5 * time.Second, Username: name, Password: password}
	}
	_, err := clientv3.New(config("alice", "wrong"))
	w.step("client with a wrong password", nil, err)
	alice, err := clientv3.New(config("alice", "alice"))
	if err != nil {
		w.step("client", nil, err)
		return
	}
	defer alice.Close()
	_, err = alice.Put(ctx, "auth/a", "by a client")
	w.step("client puts", nil, err)
	root, err := clientv3.New(config("root", "root"))
	if err != nil {
		w.step("client of root", nil, err)
		return
	}
	defer root.Close()
	watched := alice.Watch(ctx, "auth/a")
	// The token goes with the old password, which is the new one, too: the client has to log in once more.
	_, err = root.UserChangePassword(ctx, "alice", "alice")
	w.step("the token goes", nil, err)
	_, err = alice.Put(ctx, "auth/a", "by a client that logged in again")
	w.step("client puts again", nil, err)
	seen := <-watched
	w.step("client watches", map[string]any{"events": len(seen.Events), "canceled": seen.Canceled}, seen.Err())
	refused := <-alice.Watch(ctx, "auth/z")
	w.step("client watches another's", map[string]any{"canceled": refused.Canceled}, refused.Err())
	// With an id of ours, as it is part of what hashkv sums up.
	_, err = w.lease().LeaseGrant(asRoot, &pb.LeaseGrantRequest{ID: 78, TTL: 500})
	w.step("a lease", nil, err)
	_, err = alice.KeepAliveOnce(ctx, 78)
	w.step("client keeps alive", nil, err)
	_, err = root.Put(ctx, "auth/z", "on the lease", clientv3.WithLease(78))
	w.step("root puts on it", nil, err)
	_, err = alice.KeepAliveOnce(ctx, 78)
	w.step("client keeps alive no more", nil, err)
	_, err = alice.Revoke(ctx, 78)
	w.step("client revokes no more", nil, err)
}
