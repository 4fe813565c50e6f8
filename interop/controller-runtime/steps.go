package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// world has the client of a test, and the cache of the manager.
type world struct {
	client.Client
	cache   cache.Cache
	cached  client.Client
	elected <-chan struct{}
}

type step struct {
	name string
	run  func(context.Context, *world) error
}

var steps = []step{
	{"elected with a lease", elected},
	{"a job becomes ready", ready},
	{"a change of the spec is followed", followed},
	{"what is owned comes back", restored},
	{"indexed fields", indexed},
	{"metadata alone", metadata},
	{"conflicts", conflicts},
	{"wrong objects", wrong},
	{"status by update and by apply", statuses},
	{"two owners", owners},
	{"pages and selectors", pages},
	{"the finalizer runs", finalized},
	{"all of a kind", collection},
}

// eventually is what tests with envtest do.
func eventually(ctx context.Context, what string, check func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, last)
	}
	return nil
}

func named(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }

func job(name, queue string) *Job {
	return &Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: JobSpec{Image: "busybox", Queue: queue}}
}

func elected(ctx context.Context, w *world) error {
	select {
	case <-w.elected:
	case <-time.After(30 * time.Second):
		return errors.New("nobody was elected")
	}
	var lease coordination.Lease
	if err := w.Get(ctx, named("jobs"), &lease); err != nil {
		return err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil {
		return fmt.Errorf("the lease has no holder: %v", lease.Spec)
	}
	return nil
}

// released says whether the leader gave its lease back.
func released(ctx context.Context, c client.Client) error {
	var lease coordination.Lease
	if err := c.Get(ctx, named("jobs"), &lease); err != nil {
		return err
	}
	if lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		return fmt.Errorf("%s kept the lease", *lease.Spec.HolderIdentity)
	}
	return nil
}

func ready(ctx context.Context, w *world) error {
	one := job("one", "fast")
	if err := w.Create(ctx, one); err != nil {
		return err
	}
	if one.UID == "" || one.Generation != 1 || *one.Spec.Replicas != 1 || one.Kind != "" && one.Kind != "Job" {
		return fmt.Errorf("created %+v", one)
	}
	return eventually(ctx, "ready", func() error { return isReady(ctx, w, "one", 1, "1") })
}

func isReady(ctx context.Context, w *world, name string, generation int64, replicas string) error {
	var found Job
	if err := w.Get(ctx, named(name), &found); err != nil {
		return err
	}
	condition := apimeta.FindStatusCondition(found.Status.Conditions, "Ready")
	if condition == nil || found.Status.Observed != generation || condition.LastTransitionTime.IsZero() {
		return fmt.Errorf("status %+v", found.Status)
	}
	var settings core.ConfigMap
	if err := w.Get(ctx, named(name), &settings); err != nil {
		return err
	}
	if settings.Data["replicas"] != replicas || !metav1.IsControlledBy(&settings, &found) {
		return fmt.Errorf("settings %+v", settings)
	}
	var secret core.Secret
	if err := w.Get(ctx, named(name), &secret); err != nil {
		return err
	}
	if string(secret.Data["token"]) != "of "+name || !metav1.IsControlledBy(&secret, &found) {
		return fmt.Errorf("secret %+v", secret)
	}
	return nil
}

func followed(ctx context.Context, w *world) error {
	var one Job
	if err := w.Get(ctx, named("one"), &one); err != nil {
		return err
	}
	three := int32(3)
	before := one.DeepCopyObject().(*Job)
	one.Spec.Replicas = &three
	if err := w.Patch(ctx, &one, client.MergeFrom(before)); err != nil {
		return err
	}
	return eventually(ctx, "three replicas", func() error { return isReady(ctx, w, "one", 2, "3") })
}

func restored(ctx context.Context, w *world) error {
	if err := w.Delete(ctx, &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default"}}); err != nil {
		return err
	}
	settings := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default"}}
	result, err := controllerutil.CreateOrUpdate(ctx, w.Client, settings, func() error {
		settings.Data["replicas"] = "forged"
		return nil
	})
	if err != nil || result != controllerutil.OperationResultUpdated {
		return fmt.Errorf("%s, %w", result, err)
	}
	return eventually(ctx, "restored", func() error { return isReady(ctx, w, "one", 2, "3") })
}

func indexed(ctx context.Context, w *world) error {
	for name, queue := range map[string]string{"two": "fast", "three": "slow"} {
		if err := w.Create(ctx, job(name, queue)); err != nil {
			return err
		}
	}
	return eventually(ctx, "two fast ones", func() error {
		var fast JobList
		if err := w.cached.List(ctx, &fast, client.InNamespace("default"), client.MatchingFields{queueKey: "fast"}); err != nil {
			return err
		}
		if len(fast.Items) != 2 {
			return fmt.Errorf("%d are fast", len(fast.Items))
		}
		return nil
	})
}

func metadata(ctx context.Context, w *world) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(version.WithKind("JobList"))
	if err := w.List(ctx, list, client.InNamespace("default")); err != nil {
		return err
	}
	if len(list.Items) != 3 || list.ResourceVersion == "" {
		return fmt.Errorf("%d of metadata, at %q", len(list.Items), list.ResourceVersion)
	}
	one := &metav1.PartialObjectMetadata{}
	one.SetGroupVersionKind(version.WithKind("Job"))
	if err := w.Get(ctx, named("one"), one); err != nil {
		return err
	}
	before := one.DeepCopy()
	one.Labels = map[string]string{"by": "metadata"}
	if err := w.Patch(ctx, one, client.MergeFrom(before)); err != nil {
		return err
	}
	if one.Labels["by"] != "metadata" {
		return fmt.Errorf("labels %v", one.Labels)
	}
	return nil
}

func conflicts(ctx context.Context, w *world) error {
	var stale Job
	if err := w.Get(ctx, named("two"), &stale); err != nil {
		return err
	}
	fresh := stale.DeepCopyObject().(*Job)
	fresh.Spec.Image = "debian"
	if err := eventually(ctx, "an update", func() error {
		if err := w.Get(ctx, named("two"), fresh); err != nil {
			return err
		}
		fresh.Spec.Image = "debian"
		return w.Update(ctx, fresh)
	}); err != nil {
		return err
	}
	if err := w.Update(ctx, &stale); !apierrors.IsConflict(err) {
		return fmt.Errorf("a stale update: %v", err)
	}
	if err := w.Create(ctx, job("two", "")); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("created twice: %v", err)
	}
	wrong := client.Preconditions{UID: &stale.UID, ResourceVersion: &stale.ResourceVersion}
	if err := w.Delete(ctx, fresh, wrong); !apierrors.IsConflict(err) {
		return fmt.Errorf("deleted what is stale: %v", err)
	}
	return nil
}

func wrong(ctx context.Context, w *world) error {
	bad, zero := job("bad", ""), int32(0)
	bad.Spec.Replicas = &zero
	err := w.Create(ctx, bad)
	if !apierrors.IsInvalid(err) {
		return fmt.Errorf("created: %v", err)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) != 1 ||
		status.Status().Details.Causes[0].Field != "spec.replicas" {
		return fmt.Errorf("no cause: %v", err)
	}
	if err := w.Create(ctx, job("dry", ""), client.DryRunAll); err != nil {
		return err
	}
	if err := w.Get(ctx, named("dry"), &Job{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("a dry run was kept: %v", err)
	}
	if err := w.Create(ctx, &Job{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "nosuch"}, Spec: JobSpec{Image: "x"}}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("created in no namespace: %v", err)
	}
	return nil
}
