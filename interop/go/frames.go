package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
)

// body is what a client sends after the headers of a call.
type body struct {
	name     string
	encoding string
	bytes    []byte
	// taken tells that nothing is wrong with it.
	taken bool
}

// unknownField makes a message longer, and changes nothing.
var unknownField = []byte{0xf8, 0x3f, 0x01}

// frame is a message with the flag and the length that precede it.
func frame(flag byte, message []byte) []byte { return announced(flag, len(message), message) }

// announced claims another length than the message has.
func announced(flag byte, length int, message []byte) []byte {
	head := binary.BigEndian.AppendUint32([]byte{flag}, uint32(length))
	return append(head, message...)
}

func zipped(message []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(message)
	_ = w.Close()
	return out.Bytes()
}

// bodies are such as no client library sends. good is a request that the method takes, large one that is over the limit.
func bodies(good, large []byte) []body {
	packed := zipped(good)
	return []body{
		{"no protobuf", "", frame(0, []byte("\xff\xff\xff")), false},
		{"a field that is cut off", "", frame(0, []byte("\x0a\x05a")), false},
		{"a field number of zero", "", frame(0, []byte("\x00\x01")), false},
		{"a group that does not end", "", frame(0, append([]byte("\xfb\x3f"), good...)), false},
		{"shorter than its length", "", announced(0, 50, good), false},
		{"half a header", "", []byte{0, 0}, true},
		{"an unknown flag", "", frame(2, good), false},
		{"compressed without encoding", "", frame(1, packed), false},
		{"compressed as identity", "identity", frame(1, packed), false},
		{"compressed in an unknown way", "snappy", frame(1, packed), false},
		{"not compressed, with an unknown encoding", "snappy", frame(0, good), false},
		{"not compressed, with a known encoding", "gzip", frame(0, good), true},
		{"compressed", "gzip", frame(1, packed), true},
		{"compressed in two parts", "gzip", frame(1, append(zipped(good[:1]), zipped(good[1:])...)), true},
		{"compressed to nothing", "gzip", frame(1, nil), false},
		{"no gzip", "gzip", frame(1, []byte("this is not compressed")), false},
		{"gzip that is cut off", "gzip", frame(1, packed[:len(packed)-6]), false},
		{"gzip with a wrong sum", "gzip", frame(1, append(bytes.Clone(packed[:len(packed)-8]), make([]byte, 8)...)), false},
		{"gzip with more behind it", "gzip", frame(1, append(bytes.Clone(packed), "more"...)), false},
		{"no protobuf in gzip", "gzip", frame(1, zipped([]byte("\xff\xff\xff"))), false},
		{"too large when unpacked", "gzip", frame(1, zipped(large)), false},
		{"too large", "", announced(0, len(large), nil), false},
		{"too large when packed", "gzip", announced(1, len(large), nil), false},
	}
}

// runFrames sends what is wrong below the messages, over HTTP/2 as it is, and shows the status that comes back.
func runFrames(w *world) {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: transport}
	encode := func(m proto.Message) []byte {
		out, _ := proto.Marshal(m)
		return out
	}
	put := &pb.PutRequest{Key: []byte("frames"), Value: make([]byte, 3<<20)}
	large := encode(put)
	watch := &pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}
	for _, method := range []struct {
		name string
		good []byte
		// ends tells that a good request is answered, and the call over.
		ends bool
	}{
		{"KV/Range", encode(&pb.RangeRequest{Key: []byte("frames")}), true},
		{"KV/Put", encode(&pb.PutRequest{Key: []byte("frames")}), true},
		{"KV/DeleteRange", encode(&pb.DeleteRangeRequest{Key: []byte("frames")}), true},
		{"Cluster/MemberList", encode(&pb.MemberListRequest{Linearizable: true}), true},
		{"Lease/LeaseKeepAlive", encode(&pb.LeaseKeepAliveRequest{ID: 4711}), true},
		// etcd's watch goes on when its client has said all.
		{"Watch/Watch", encode(watch), false},
		{"Maintenance/Snapshot", nil, false},
	} {
		for _, b := range bodies(append(method.good, unknownField...), large) {
			if b.taken && !method.ends {
				continue
			}
			answer, err := raw(client, w.endpoint, method.name, b)
			w.step(method.name+": "+b.name, answer, err)
		}
	}
}

// raw makes one call and gives what it ended with.
func raw(client *http.Client, endpoint, method string, b body) (map[string]string, error) {
	ctx, cancel := within(20)
	defer cancel()
	address := "http://" + endpoint + "/etcdserverpb." + method
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(b.bytes))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	if b.encoding != "" {
		request.Header.Set("Grpc-Encoding", b.encoding)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return nil, err
	}
	// A status that comes alone stands in the headers.
	ended := response.Header
	if ended.Get("Grpc-Status") == "" {
		ended = response.Trailer
	}
	text, err := url.PathUnescape(ended.Get("Grpc-Message"))
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"http":    fmt.Sprint(response.StatusCode),
		"code":    ended.Get("Grpc-Status"),
		"message": anySpace(text),
	}, nil
}

// anySpace undoes that Go's protobuf words its errors with one kind of space or another, by build.
func anySpace(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, text)
}
