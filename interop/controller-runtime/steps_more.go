package main

import (
	"context"
	"fmt"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func statuses(ctx context.Context, w *world) error {
	var one Job
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := w.Get(ctx, named("one"), &one); err != nil {
			return err
		}
		one.Spec.Image = "not taken"
		apimeta.SetStatusCondition(&one.Status.Conditions, metav1.Condition{Type: "Seen", Status: "True", Reason: "Test", Message: "x"})
		return w.Status().Update(ctx, &one)
	})
	if err != nil {
		return err
	}
	if one.Spec.Image != "busybox" || one.Generation != 2 || apimeta.FindStatusCondition(one.Status.Conditions, "Seen") == nil {
		return fmt.Errorf("after an update of the status: %+v", one)
	}
	applied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version.String(), "kind": "Job",
		"metadata": map[string]any{"name": "one", "namespace": "default"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Applied", "status": "True", "reason": "Test", "message": "x",
			"lastTransitionTime": "2026-01-02T03:04:05Z"}}}}}
	if err := applyStatus(ctx, w.Client, applied, "status-applier"); err != nil {
		return err
	}
	if err := w.Get(ctx, named("one"), &one); err != nil {
		return err
	}
	if len(one.Status.Conditions) != 3 {
		return fmt.Errorf("after an apply of the status: %+v", one.Status)
	}
	return nil
}

func owners(ctx context.Context, w *world) error {
	settings := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "shared", "namespace": "default"}, "data": map[string]any{"key": value}}}
	}
	if err := apply(ctx, w.Client, settings("a"), "first"); err != nil {
		return err
	}
	err := w.Patch(ctx, settings("b"), client.Apply, client.FieldOwner("second"))
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("no conflict: %v", err)
	}
	if err := apply(ctx, w.Client, settings("b"), "second"); err != nil {
		return err
	}
	var found core.ConfigMap
	if err := w.Get(ctx, named("shared"), &found); err != nil {
		return err
	}
	if found.Data["key"] != "b" || len(found.ManagedFields) != 1 {
		return fmt.Errorf("shared %+v", found)
	}
	before := found.DeepCopy()
	found.Data["more"] = "x"
	if err := w.Patch(ctx, &found, client.StrategicMergeFrom(before)); err != nil {
		return err
	}
	return w.Delete(ctx, &found)
}

func pages(ctx context.Context, w *world) error {
	names, token := 0, ""
	for {
		var page JobList
		if err := w.List(ctx, &page, client.InNamespace("default"), client.Limit(2), client.Continue(token)); err != nil {
			return err
		}
		names += len(page.Items)
		if token = page.Continue; token == "" {
			break
		}
	}
	var labelled JobList
	if err := w.List(ctx, &labelled, client.MatchingLabels{"by": "metadata"}); err != nil {
		return err
	}
	var named JobList
	if err := w.List(ctx, &named, client.MatchingFields{"metadata.name": "two"}); err != nil {
		return err
	}
	if names != 3 || len(labelled.Items) != 1 || len(named.Items) != 1 {
		return fmt.Errorf("%d in pages, %d with the label, %d with the name", names, len(labelled.Items), len(named.Items))
	}
	return nil
}

func finalized(ctx context.Context, w *world) error {
	if err := w.Delete(ctx, job("one", ""), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return err
	}
	return eventually(ctx, "all is gone", func() error {
		for _, o := range []client.Object{&Job{}, &core.ConfigMap{}, &core.Secret{}} {
			if err := w.Get(ctx, named("one"), o); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T: %v", o, err)
			}
		}
		return nil
	})
}

func collection(ctx context.Context, w *world) error {
	if err := w.DeleteAllOf(ctx, &Job{}, client.InNamespace("default")); err != nil {
		return err
	}
	return eventually(ctx, "no job is left", func() error {
		var left JobList
		if err := w.cache.List(ctx, &left); err != nil {
			return err
		}
		if len(left.Items) > 0 {
			return fmt.Errorf("%d are left", len(left.Items))
		}
		return nil
	})
}
