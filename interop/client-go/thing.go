package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	group          = "g.example.com"
	definitionName = "things." + group
	patience       = 2 * time.Minute
	pause          = 20 * time.Millisecond
)

var (
	things      = schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

type object = map[string]any

// connect is a client without a limit of its own, so that the server is what is measured.
func connect(kubeconfig string, change func(*rest.Config)) (dynamic.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	if change != nil {
		change(config)
	}
	return dynamic.NewForConfig(config)
}

func gate(on bool) object {
	return object{"name": "N", "preRelease": "alpha", "enabled": on, "fieldPaths": []any{".spec.n"}}
}

func definition(name, kind string, gates ...any) *unstructured.Unstructured {
	schema := object{"type": "object", "properties": object{"spec": object{"type": "object", "properties": object{
		"n": object{"type": "integer"}, "text": object{"type": "string"}}}}}
	version := object{"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": schema}}
	spec := object{"group": group, "scope": "Namespaced", "names": object{"plural": name, "kind": kind},
		"versions": []any{version}}
	if len(gates) > 0 {
		spec["customFeatureGates"] = object{"featureGates": gates}
	}
	return &unstructured.Unstructured{Object: object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": name + "." + group}, "spec": spec}}
}

func thing(name string, n int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: object{"apiVersion": group + "/v1", "kind": "Thing",
		"metadata": object{"name": name, "namespace": "default"}, "spec": object{"n": n}}}
}

func number(o *unstructured.Unstructured) int64 {
	n, found, _ := unstructured.NestedInt64(o.Object, "spec", "n")
	if !found {
		return -1
	}
	return n
}

// define makes things known and waits until every client is served.
func define(ctx context.Context, clients []dynamic.Interface, gates ...any) error {
	_, err := clients[0].Resource(definitions).Create(ctx, definition("things", "Thing", gates...), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("define things: %w", err)
	}
	for _, client := range clients {
		err := until("things are served", func() error {
			_, err := client.Resource(things).Namespace("default").List(ctx, metav1.ListOptions{})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func mergePatch(ctx context.Context, of dynamic.ResourceInterface, name string, patch object) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return of.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
}

// again repeats what an unwell store did not answer; every other answer is the caller's.
func again(what string, count *int64, act func() error) error {
	begin := time.Now()
	for {
		err := act()
		if err == nil || !unanswered(err) {
			return err
		}
		*count++
		if time.Since(begin) > patience {
			return fmt.Errorf("%s for %v: %w", what, patience, err)
		}
		time.Sleep(pause)
	}
}

func unanswered(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}

func until(what string, holds func() error) error {
	begin := time.Now()
	for {
		err := holds()
		if err == nil {
			return nil
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("waited %v until %s: %w", patience, what, err)
		}
		time.Sleep(pause)
	}
}
