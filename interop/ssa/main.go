// Replays scenarios of applies and updates through Kubernetes' own field manager and records what comes of each step.
//
//	go run . < recorded.json > again.json
//	go run . -random 100 -seed 7 > recorded.json
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sort"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Versions has the schema of each version; objects of all of them convert by changing the apiVersion.
type Versions map[string]json.RawMessage

// File is what is read and written.
type File struct {
	// Versions are those of scenarios that have none of their own.
	Versions  Versions   `json:"versions,omitempty"`
	Scenarios []Scenario `json:"scenarios"`
}

// Scenario is a history of one object.
type Scenario struct {
	Name     string   `json:"name"`
	Versions Versions `json:"versions,omitempty"`
	Steps    []Step   `json:"steps"`
}

// Step is one write, and what it came to.
type Step struct {
	Apply       json.RawMessage `json:"apply,omitempty"`
	Update      json.RawMessage `json:"update,omitempty"`
	Manager     string          `json:"manager"`
	Force       bool            `json:"force,omitempty"`
	Version     string          `json:"version,omitempty"`
	Subresource string          `json:"subresource,omitempty"`
	// Versions are the schemas from this step on.
	Versions Versions `json:"versions,omitempty"`

	Error  string          `json:"error,omitempty"`
	Causes json.RawMessage `json:"causes,omitempty"`
	Object json.RawMessage `json:"object,omitempty"`
	// Managed has the entries without their times; Timed says which of them have one.
	Managed json.RawMessage `json:"managed,omitempty"`
	Timed   []bool          `json:"timed,omitempty"`
}

const group = "example.com"

func main() {
	count := flag.Int("random", 0, "make this many scenarios")
	seed := flag.Int64("seed", 1, "what the random ones are made of")
	flag.Parse()
	var file File
	if *count > 0 {
		file = random(*count, *seed)
	} else if err := json.NewDecoder(os.Stdin).Decode(&file); err != nil {
		log.Fatal(err)
	}
	for i := range file.Scenarios {
		if err := replay(&file.Scenarios[i], file.Versions); err != nil {
			log.Fatalf("%s: %v", file.Scenarios[i].Name, err)
		}
	}
	if err := write(file); err != nil {
		log.Fatal(err)
	}
}

// write puts every step on a line of its own, so that differences can be read.
func write(file File) error {
	line := func(value any) string {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(value); err != nil {
			log.Fatal(err)
		}
		return strings.TrimSpace(out.String())
	}
	var scenarios []string
	for _, s := range file.Scenarios {
		var steps []string
		for _, step := range s.Steps {
			steps = append(steps, "   "+line(step))
		}
		versions := ""
		if s.Versions != nil {
			versions = fmt.Sprintf(" \"versions\": %s,\n", line(s.Versions))
		}
		scenarios = append(scenarios, fmt.Sprintf(" {\"name\": %s,\n %s \"steps\": [\n%s\n ]}", line(s.Name), versions, strings.Join(steps, ",\n")))
	}
	versions := file.Versions
	if versions == nil {
		versions = Versions{}
	}
	_, err := fmt.Printf("{\"versions\": %s,\n \"scenarios\": [\n%s\n]}\n", line(versions), strings.Join(scenarios, ",\n"))
	return err
}

func replay(s *Scenario, versions Versions) error {
	if s.Versions != nil {
		versions = s.Versions
	}
	live := map[string]any{}
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Versions != nil {
			versions = step.Versions
		}
		types, err := typesOf(versions)
		if err != nil {
			return err
		}
		if step.Version == "" {
			step.Version = "v1"
		}
		version := schema.GroupVersion{Group: group, Version: step.Version}
		manager, err := managedfields.NewDefaultCRDFieldManager(types, converter{versions}, defaulter{}, creater{}, version.WithKind("Thing"), version, step.Subresource, reset(versions, step.Subresource))
		if err != nil {
			return err
		}
		current := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(live)}
		current.SetGroupVersionKind(version.WithKind("Thing"))
		given := &unstructured.Unstructured{Object: map[string]any{}}
		body := step.Apply
		if body == nil {
			body = step.Update
		}
		if err := json.Unmarshal(body, &given.Object); err != nil {
			return err
		}
		given.SetGroupVersionKind(version.WithKind("Thing"))
		var result runtime.Object
		if step.Apply != nil {
			result, err = manager.Apply(current, given, step.Manager, step.Force)
		} else {
			if len(live) > 0 {
				given.SetUID("u")
			}
			result, err = manager.Update(current, given, step.Manager)
		}
		step.Error, step.Causes, step.Object, step.Managed, step.Timed = "", nil, nil, nil, nil
		if err != nil {
			step.Error = err.Error()
			if status, ok := err.(apierrors.APIStatus); ok && status.Status().Details != nil {
				causes := status.Status().Details.Causes
				sort.SliceStable(causes, func(i, j int) bool { return causes[i].Message < causes[j].Message })
				step.Causes, _ = json.Marshal(causes)
			}
			continue
		}
		object := result.(*unstructured.Unstructured)
		object.SetUID("u")
		live = object.Object
		if err := record(step, object.DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

func record(step *Step, object *unstructured.Unstructured) (err error) {
	entries := object.GetManagedFields()
	if entries == nil {
		entries = []metav1.ManagedFieldsEntry{}
	}
	key := func(e metav1.ManagedFieldsEntry) string {
		return string(e.Operation) + "\x00" + e.Manager + "\x00" + e.APIVersion + "\x00" + e.Subresource
	}
	sort.Slice(entries, func(i, j int) bool { return key(entries[i]) < key(entries[j]) })
	for i := range entries {
		step.Timed = append(step.Timed, entries[i].Time != nil)
		entries[i].Time = nil
	}
	if step.Managed, err = json.Marshal(entries); err != nil {
		return err
	}
	object.SetManagedFields(nil)
	object.SetUID("")
	step.Object, err = json.Marshal(object.Object)
	return err
}

func reset(versions Versions, subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	filters := map[fieldpath.APIVersion]fieldpath.Filter{}
	for version := range versions {
		var filter fieldpath.Filter = fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
		if subresource == "status" {
			filter = fieldpath.NewIncludeMatcherFilter(fieldpath.MakePrefixMatcherOrDie("status"))
		}
		filters[fieldpath.APIVersion(group+"/"+version)] = filter
	}
	return filters
}

func typesOf(versions Versions) (managedfields.TypeConverter, error) {
	models := map[string]*spec.Schema{}
	add := func(name string, text []byte) error {
		models[name] = &spec.Schema{}
		return json.Unmarshal(text, models[name])
	}
	if err := add("ObjectMeta", []byte(objectMeta)); err != nil {
		return nil, err
	}
	for version, text := range versions {
		var own map[string]any
		if err := json.Unmarshal(text, &own); err != nil {
			return nil, err
		}
		own["x-kubernetes-embedded-resource"] = true
		embed(own)
		own["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": group, "version": version, "kind": "Thing"}}
		text, err := json.Marshal(own)
		if err != nil {
			return nil, err
		}
		if err := add("Thing."+version, text); err != nil {
			return nil, err
		}
	}
	return managedfields.NewTypeConverter(models, false)
}

// embed gives whole objects, at the top or within another, what all objects have.
func embed(schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	for _, property := range properties {
		embed(property.(map[string]any))
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inner, ok := schema[key].(map[string]any); ok {
			embed(inner)
		}
	}
	if schema["x-kubernetes-embedded-resource"] != true {
		return
	}
	if properties == nil {
		properties = map[string]any{}
		schema["properties"] = properties
	}
	properties["apiVersion"] = map[string]any{"type": "string"}
	properties["kind"] = map[string]any{"type": "string"}
	properties["metadata"] = map[string]any{"$ref": "#/definitions/ObjectMeta"}
}

const objectMeta = `{"type": "object", "properties": {
	"name": {"type": "string"}, "namespace": {"type": "string"}, "generateName": {"type": "string"}, "uid": {"type": "string"},
	"resourceVersion": {"type": "string"}, "selfLink": {"type": "string"}, "generation": {"type": "integer"},
	"creationTimestamp": {"type": "string", "format": "date-time"}, "deletionTimestamp": {"type": "string", "format": "date-time"},
	"deletionGracePeriodSeconds": {"type": "integer"},
	"labels": {"type": "object", "additionalProperties": {"type": "string"}},
	"annotations": {"type": "object", "additionalProperties": {"type": "string"}},
	"finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
	"ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
		"items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
			"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"}, "uid": {"type": "string"},
			"controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"}}}},
	"managedFields": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object"}}
}}`

type converter struct{ versions Versions }

func (c converter) Convert(in, out, context any) error { return fmt.Errorf("not used") }
func (c converter) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
func (c converter) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	out := in.DeepCopyObject().(*unstructured.Unstructured)
	version := gv.(schema.GroupVersion)
	if _, known := c.versions[version.Version]; !known {
		return nil, runtime.NewNotRegisteredErrForKind("thing", version.WithKind("Thing"))
	}
	out.SetGroupVersionKind(version.WithKind("Thing"))
	return out, nil
}

type defaulter struct{}

func (defaulter) Default(runtime.Object) {}

type creater struct{}

func (creater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, nil
}
