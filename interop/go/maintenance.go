package main

import (
	"crypto/sha256"
	"io"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

func runMaintenance(w *world) {
	ctx, cancel := within(60)
	defer cancel()
	w.status("status")
	alarms, err := w.cli.AlarmList(ctx)
	w.step("alarm list", (*pb.AlarmResponse)(alarms), err)
	disarm, err := w.maintenance().Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE})
	w.step("disarm what is not raised", disarm, err)
	raised, err := w.maintenance().Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE, MemberID: 5})
	w.step("raise NOSPACE", hideMembers(raised), err)
	w.put("put under NOSPACE", "nospace", "1")
	w.txn("txn that reads under NOSPACE", nil, nil, nil)
	w.get("get under NOSPACE", "a")
	w.del("delete under NOSPACE", "none")
	grant, err := w.lease().LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: 2001, TTL: 100})
	w.step("lease grant under NOSPACE", grant, err)
	w.status("status under NOSPACE")
	list, err := w.maintenance().Alarm(ctx, &pb.AlarmRequest{})
	w.step("list the alarm", hideMembers(list), err)
	disarm, err = w.maintenance().Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, Alarm: pb.AlarmType_NOSPACE, MemberID: 5})
	w.step("disarm", hideMembers(disarm), err)
	w.put("put after disarming", "nospace", "1")
	defrag, err := w.cli.Defragment(ctx, w.endpoint)
	w.step("defragment", (*pb.DefragmentResponse)(defrag), err)
	w.get("get after defragmenting", "a")
	w.hashKV("hash after defragmenting", 0)
	hash, err := w.maintenance().Hash(ctx, &pb.HashRequest{})
	if hash != nil {
		// It sums up the file with all its buckets; the members in it differ.
		w.step("hash of the backend", map[string]bool{"not 0": hash.Hash != 0}, err)
	} else {
		w.step("hash of the backend", nil, err)
	}
	w.snapshot()
	_, err = w.cli.MoveLeader(ctx, 12345)
	w.step("move leader to nobody", nil, err)
	for _, version := range []string{"", "abc", "3.7.0", "2.0", "9.9"} {
		resp, err := w.maintenance().Downgrade(ctx, &pb.DowngradeRequest{Action: pb.DowngradeRequest_VALIDATE, Version: version})
		w.step("downgrade validate "+version, resp, err)
	}
	cancelled, err := w.maintenance().Downgrade(ctx, &pb.DowngradeRequest{Action: pb.DowngradeRequest_CANCEL})
	w.step("downgrade cancel without a job", cancelled, err)
}

func hideMembers(resp *pb.AlarmResponse) *pb.AlarmResponse {
	if resp != nil {
		for _, alarm := range resp.Alarms {
			if alarm.MemberID != 5 {
				alarm.MemberID = 0
			}
		}
	}
	return resp
}

// status shows what must be equal or sane; versions are the servers' own.
func (w *world) status(name string) {
	ctx, cancel := within(10)
	defer cancel()
	s, err := w.maintenance().Status(ctx, &pb.StatusRequest{})
	// The last entry is applied a moment after it is in the log.
	for err == nil && s.RaftAppliedIndex != s.RaftIndex && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
		s, err = w.maintenance().Status(ctx, &pb.StatusRequest{})
	}
	if err != nil {
		w.step(name, nil, err)
		return
	}
	w.step(name, map[string]any{
		"revision": s.Header.Revision, "raftTerm": s.RaftTerm, "header term": s.Header.RaftTerm,
		"leads": s.Leader != 0 && s.Leader == s.Header.MemberId, "isLearner": s.IsLearner, "errors": plainSpaces(s.Errors),
		"version": s.Version != "", "dbSize": s.DbSize > 0, "dbSizeInUse": s.DbSizeInUse > 0 && s.DbSizeInUse <= s.DbSize,
		"dbSizeQuota": s.DbSizeQuota, "storageVersion": s.StorageVersion != "", "raftIndex": s.RaftIndex > 0,
		"applied": s.RaftAppliedIndex == s.RaftIndex, "downgrade": w.message(s.DowngradeInfo),
	}, nil)
}

// plainSpaces undoes what Go's protobuf does to its texts so that nobody depends on them.
func plainSpaces(texts []string) []string {
	for i := range texts {
		texts[i] = strings.Join(strings.Fields(texts[i]), " ")
	}
	return texts
}

// snapshot reads a whole snapshot; its last 32 bytes are the SHA-256 of the rest.
func (w *world) snapshot() {
	ctx, cancel := within(30)
	defer cancel()
	resp, err := w.cli.SnapshotWithVersion(ctx)
	if err != nil {
		w.step("snapshot", nil, err)
		return
	}
	bytes, err := io.ReadAll(resp.Snapshot)
	if err != nil || len(bytes) < sha256.Size {
		w.step("snapshot", len(bytes), err)
		return
	}
	body, tail := bytes[:len(bytes)-sha256.Size], bytes[len(bytes)-sha256.Size:]
	w.step("snapshot", map[string]bool{"version told": resp.Version != "", "checksum": sha256.Sum256(body) == [32]byte(tail),
		"whole pages": len(body)%512 == 0, "not empty": len(body) > 0}, nil)
	stream, err := w.maintenance().Snapshot(ctx, &pb.SnapshotRequest{})
	if err != nil {
		w.step("raw snapshot", nil, err)
		return
	}
	var total, last uint64
	sane := true
	for {
		chunk, err := stream.Recv()
		if err != nil {
			w.step("raw snapshot ends", map[string]any{"remaining counts down": sane, "end": err.Error(), "last remaining": last}, nil)
			return
		}
		size := uint64(len(chunk.Blob))
		sane = sane && (total == 0 || last >= size && chunk.RemainingBytes == last-size || last == 0 && size == sha256.Size)
		total, last = total+size, chunk.RemainingBytes
	}
}
