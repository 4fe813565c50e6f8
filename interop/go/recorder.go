package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// recorder prints steps, and knows what to leave out of answers.
type recorder struct {
	part string
	// aliases stands for what a server chooses, such as ids of leases.
	aliases map[string]string
}

func newRecorder() *recorder { return &recorder{aliases: map[string]string{}} }

// step prints the outcome of one request.
func (r *recorder) step(name string, answer any, err error) {
	line := map[string]any{"step": r.part + "/" + name}
	switch m := answer.(type) {
	case nil:
	case proto.Message:
		if err == nil {
			line["answer"] = r.message(m)
		}
	default:
		if err == nil || answer != nil {
			line["answer"] = m
		}
	}
	if err != nil {
		line["error"] = describe(err)
	}
	text, failed := json.Marshal(line)
	if failed != nil {
		fmt.Fprintln(os.Stderr, "failed to write a step:", failed)
		os.Exit(1)
	}
	fmt.Println(r.rename(string(text)))
}

// alias makes a lease appear under a name from now on, as number and in keys that hold it in hex.
func (r *recorder) alias(id clientv3.LeaseID, name string) {
	r.aliases[fmt.Sprintf("%x", int64(id))] = name
	r.aliases[fmt.Sprintf("%d", int64(id))] = name
}

func (r *recorder) rename(text string) string {
	for id, name := range r.aliases {
		text = strings.ReplaceAll(text, id, name)
	}
	return text
}

func describe(err error) any {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		return map[string]string{"code": known.Code().String(), "message": known.Error()}
	}
	if s, ok := status.FromError(err); ok {
		return map[string]string{"code": s.Code().String(), "message": s.Message()}
	}
	return map[string]string{"code": "client", "message": err.Error()}
}

// left out: chosen by each server or dependent on its files
var dropped = map[string]bool{"cluster_id": true, "member_id": true}

func (r *recorder) message(m proto.Message) any {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return "failed to show: " + err.Error()
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return "failed to show: " + err.Error()
	}
	return clean(value, "")
}

func clean(value any, key string) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			if dropped[k] {
				delete(v, k)
				continue
			}
			v[k] = clean(v[k], k)
		}
	case []any:
		for i := range v {
			v[i] = clean(v[i], key)
		}
	case string:
		if key == "key" || key == "value" || key == "range_end" {
			return readable(v)
		}
	}
	return value
}

// readable undoes base64 where the bytes are text; long values are shown by their length.
func readable(text string) string {
	bytes, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return text
	}
	if len(bytes) > 200 {
		return fmt.Sprintf("%d bytes", len(bytes))
	}
	if !utf8.Valid(bytes) || strings.ContainsFunc(string(bytes), unicode.IsControl) {
		return fmt.Sprintf("%q", bytes)
	}
	return string(bytes)
}
