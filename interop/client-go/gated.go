package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	gatesOfKind  = 5
	warmUpdates  = 50
	engineMetric = "fieldgate_evaluation_seconds_total"
)

// gated updates an object of 10 kB again and again, each time a field that is taken and one that a gate can hold back. With -gates its
// definition has 20 gates that are off: on 10 plain fields, 5 of the entries of a map, 5 of the items of a list. It says as a line of JSON
// what an update took of the processes that were named, and how much of that the server says its gates took.
func gated(ctx context.Context, o options) (string, error) {
	client, err := connect(o.kubeconfigs[0], nil)
	if err != nil {
		return "", err
	}
	if _, err := client.Resource(definitions).Create(ctx, gatedDefinition(), metav1.CreateOptions{}); err != nil {
		return "", err
	}
	all := client.Resource(things).Namespace("default")
	err = until("things are served", func() error {
		_, err := all.Create(ctx, gatedThing(), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return "", err
	}
	if o.gates {
		patch := object{"spec": object{"customFeatureGates": object{"featureGates": twentyGates()}}}
		if _, err := mergePatch(ctx, client.Resource(definitions), definitionName, patch); err != nil {
			return "", err
		}
	}
	// What is done once is no part of an update, and neither is the first use of a code path.
	if _, err := updates(ctx, all, options{count: warmUpdates, gates: o.gates}); err != nil {
		return "", err
	}
	return measured(ctx, all, o)
}

func measured(ctx context.Context, all dynamic.ResourceInterface, o options) (string, error) {
	engine, err := engineSeconds(ctx, o.kubeconfigs[0])
	if err != nil {
		return "", err
	}
	m := &measure{pids: o.pids}
	before, begin := cpu(m.pids), time.Now()
	size, err := updates(ctx, all, o)
	if err != nil {
		return "", err
	}
	m.note("update", o.count, before, time.Since(begin))
	after, err := engineSeconds(ctx, o.kubeconfigs[0])
	if err != nil {
		return "", err
	}
	perUpdate := (after - engine) * 1000 / float64(o.count)
	line, err := json.Marshal(object{"updates": o.count, "bytes": size, "figures": m.figures, "engine_ms": perUpdate})
	return string(line), err
}

// engineSeconds is the time that field gates have taken so far, as the server counts it.
func engineSeconds(ctx context.Context, kubeconfig string) (float64, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return 0, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return 0, err
	}
	text, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, engineMetric+" "); is {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("the server does not count %s", engineMetric)
}

// updates returns the size of the object after the last.
func updates(ctx context.Context, all dynamic.ResourceInterface, o options) (int, error) {
	var last *unstructured.Unstructured
	for i := range o.count {
		answer, err := mergePatch(ctx, all, "gated", object{"spec": object{"n": i + 1, "f0": i + 1}})
		if err != nil {
			return 0, err
		}
		last = answer
	}
	taken, _, _ := unstructured.NestedInt64(last.Object, "spec", "f0")
	if number(last) != int64(o.count) || (taken == int64(o.count)) == o.gates {
		return 0, fmt.Errorf("gates %v: n is %d and f0 is %d after %d updates", o.gates, number(last), taken, o.count)
	}
	size, err := last.MarshalJSON()
	return len(size), err
}

func fieldsOf(prefix string, count int, value any) object {
	all := object{}
	for i := range count {
		all[fmt.Sprintf("%s%d", prefix, i)] = value
	}
	return all
}

func gatedDefinition() *unstructured.Unstructured {
	integer, text := object{"type": "integer"}, object{"type": "string"}
	properties := fieldsOf("f", 2*gatesOfKind, integer)
	properties["n"] = integer
	properties["rest"] = object{"type": "object", "additionalProperties": text}
	entry := object{"type": "object", "properties": fieldsOf("e", gatesOfKind, integer)}
	properties["map"] = object{"type": "object", "additionalProperties": entry}
	item := fieldsOf("i", gatesOfKind, integer)
	item["name"] = text
	properties["list"] = object{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"name"},
		"items": object{"type": "object", "required": []any{"name"}, "properties": item}}
	made := definition("things", "Thing")
	version := made.Object["spec"].(object)["versions"].([]any)[0].(object)
	version["schema"] = object{"openAPIV3Schema": object{"type": "object",
		"properties": object{"spec": object{"type": "object", "properties": properties}}}}
	return made
}

func twentyGates() []any {
	var gates []any
	add := func(count int, path string) {
		for i := range count {
			gates = append(gates, object{"name": fmt.Sprintf("G%d", len(gates)), "preRelease": "alpha", "enabled": false,
				"fieldPaths": []any{fmt.Sprintf(path, i)}})
		}
	}
	add(2*gatesOfKind, ".spec.f%d")
	add(gatesOfKind, ".spec.map[*].e%d")
	add(gatesOfKind, ".spec.list[*].i%d")
	return gates
}

func gatedThing() *unstructured.Unstructured {
	made := thing("gated", 0)
	spec := fieldsOf("f", 2*gatesOfKind, int64(0))
	spec["n"] = int64(0)
	spec["map"] = object{"a": fieldsOf("e", gatesOfKind, int64(1)), "b": fieldsOf("e", gatesOfKind, int64(1))}
	first, second := fieldsOf("i", gatesOfKind, int64(1)), fieldsOf("i", gatesOfKind, int64(1))
	first["name"], second["name"] = "a", "b"
	spec["list"] = []any{first, second}
	spec["rest"] = fieldsOf("key", 80, strings.Repeat("x", 100))
	made.Object["spec"] = spec
	return made
}
