package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
)

const randomSchema = `{"type": "object", "properties": {
	"spec": {"type": "object", "properties": {
		"n": {"type": "integer"}, "s": {"type": "string"}, "any": {"x-kubernetes-int-or-string": true},
		"struct": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"},
			"in": {"type": "object", "properties": {"c": {"type": "string"}}}}},
		"map": {"type": "object", "additionalProperties": {"type": "string"}},
		"maps": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}},
		"atom": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
		"list": {"type": "array", "items": {"type": "string"}},
		"set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
		"keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"], "items": {"type": "object", "properties": {
			"k": {"type": "string"}, "p": {"type": "string", "default": "tcp"}, "v": {"type": "string"}, "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}}}},
		"free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": {"type": "string"}}}
	}},
	"status": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}}
}}`

type dice struct{ *rand.Rand }

func (d dice) some(p float64) bool { return d.Float64() < p }
func (d dice) word() string        { return string(rune('x' + d.Intn(3))) }
func (d dice) words() []any {
	list := []any{}
	for _, i := range d.Perm(4)[:d.Intn(4)] {
		list = append(list, string(rune('p'+i)))
	}
	return list
}

func (d dice) fields(names ...string) map[string]any {
	out := map[string]any{}
	for _, name := range names {
		if d.some(0.5) {
			out[name] = d.word()
		}
	}
	return out
}

func (d dice) free(depth int) any {
	switch d.Intn(5) {
	case 0:
		return d.word()
	case 1:
		return d.words()
	case 2:
		return int64(d.Intn(3))
	}
	if depth == 0 {
		return d.some(0.5)
	}
	out := map[string]any{}
	for i := 0; i < d.Intn(3); i++ {
		out[string(rune('a'+d.Intn(3)))] = d.free(depth - 1)
	}
	return out
}

func (d dice) keyed() []any {
	list := []any{}
	for _, i := range d.Perm(3)[:d.Intn(4)] {
		item := d.fields("v")
		item["k"] = string(rune('a' + i))
		if d.some(0.3) {
			item["p"] = []string{"tcp", "udp"}[d.Intn(2)]
		}
		if d.some(0.4) {
			set := []any{}
			for _, n := range d.Perm(3)[:d.Intn(3)] {
				set = append(set, int64(n))
			}
			item["set"] = set
		}
		list = append(list, item)
	}
	return list
}

func (d dice) object() map[string]any {
	spec := d.fields("s")
	put := func(name string, make func() any) {
		if d.some(0.35) {
			spec[name] = make()
		}
		if d.some(0.03) {
			spec[name] = nil
		}
	}
	put("n", func() any { return int64(d.Intn(3)) })
	put("any", func() any {
		if d.some(0.5) {
			return d.word()
		}
		return int64(d.Intn(3))
	})
	put("struct", func() any {
		out := d.fields("a", "b")
		if d.some(0.5) {
			out["in"] = d.fields("c")
		}
		return out
	})
	put("map", func() any { return d.fields("a", "b", "c") })
	put("maps", func() any {
		out := map[string]any{}
		for _, name := range []string{"m", "n"} {
			if d.some(0.6) {
				out[name] = d.fields("a", "b")
			}
		}
		return out
	})
	put("atom", func() any { return d.fields("a", "b") })
	put("list", func() any { return d.words() })
	put("set", func() any { return d.words() })
	put("keyed", func() any { return d.keyed() })
	put("free", func() any {
		out := d.fields("known")
		if d.some(0.7) {
			out["a"] = d.free(2)
		}
		if d.some(0.3) {
			out["b"] = d.free(2)
		}
		return out
	})
	object := map[string]any{"metadata": map[string]any{"name": "t"}}
	if d.some(0.9) {
		object["spec"] = spec
	}
	if d.some(0.3) {
		object["status"] = map[string]any{"x": int64(d.Intn(2)), "y": d.word()}
	}
	if d.some(0.3) {
		object["metadata"].(map[string]any)["labels"] = d.fields("a", "b")
	}
	if d.some(0.2) {
		object["metadata"].(map[string]any)["finalizers"] = d.words()
	}
	return object
}

// random makes histories by several managers; versions have the same schema.
func random(count int, seed int64) File {
	d := dice{rand.New(rand.NewSource(seed))}
	scenarios := make([]Scenario, count)
	for i := range scenarios {
		s := Scenario{Name: fmt.Sprintf("seed %d, number %d", seed, i)}
		for range 3 + d.Intn(6) {
			body, _ := json.Marshal(d.object())
			step := Step{Manager: []string{"one", "two", "three"}[d.Intn(3)], Version: "v1"}
			if d.some(0.2) {
				step.Version = "v2"
			}
			if d.some(0.15) {
				step.Subresource = "status"
			}
			if d.some(0.7) {
				step.Apply, step.Force = body, d.some(0.6)
			} else {
				step.Update = body
			}
			s.Steps = append(s.Steps, step)
		}
		scenarios[i] = s
	}
	versions := Versions{"v1": json.RawMessage(randomSchema), "v2": json.RawMessage(randomSchema)}
	return File{Versions: versions, Scenarios: scenarios}
}
