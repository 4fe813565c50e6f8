package main

import (
	"context"
	"fmt"

	core "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	finalizer = "batch.example.com/cleanup"
	queueKey  = ".spec.queue"
)

// controller keeps a ConfigMap for every Job, a Secret by apply, and says so in the status.
type controller struct {
	client.Client
}

func (c *controller) setup(mgr ctrl.Manager) error {
	byQueue := func(o client.Object) []string { return []string{o.(*Job).Spec.Queue} }
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &Job{}, queueKey, byQueue); err != nil {
		return err
	}
	changed := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))
	return ctrl.NewControllerManagedBy(mgr).For(&Job{}, changed).Owns(&core.ConfigMap{}).
		Owns(&core.Secret{}, builder.OnlyMetadata).Complete(c)
}

func (c *controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var job Job
	if err := c.Get(ctx, request.NamespacedName, &job); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !job.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, c.end(ctx, &job)
	}
	if controllerutil.AddFinalizer(&job, finalizer) {
		// It leaves the generation as it is, so nothing would bring us back.
		if err := c.Update(ctx, &job); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := c.keep(ctx, &job); err != nil {
		return ctrl.Result{}, err
	}
	before := job.DeepCopyObject().(*Job)
	job.Status.Observed = job.Generation
	apimeta.SetStatusCondition(&job.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue,
		ObservedGeneration: job.Generation, Reason: "Kept", Message: "all is there"})
	return ctrl.Result{}, c.Status().Patch(ctx, &job, client.MergeFrom(before))
}

// keep makes what belongs to the job.
func (c *controller) keep(ctx context.Context, job *Job) error {
	settings := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: job.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.Client, settings, func() error {
		settings.Data = map[string]string{"image": job.Spec.Image, "replicas": fmt.Sprint(*job.Spec.Replicas)}
		return controllerutil.SetControllerReference(job, settings, c.Scheme())
	})
	if err != nil {
		return err
	}
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"name": job.Name, "namespace": job.Namespace},
		"stringData": map[string]any{"token": "of " + job.Name}}}
	if err := controllerutil.SetControllerReference(job, secret, c.Scheme()); err != nil {
		return err
	}
	return apply(ctx, c.Client, secret, "job-controller")
}

// end cleans up by hand what garbage collection would take.
func (c *controller) end(ctx context.Context, job *Job) error {
	for _, o := range []client.Object{&core.ConfigMap{}, &core.Secret{}} {
		o.SetName(job.Name)
		o.SetNamespace(job.Namespace)
		if err := client.IgnoreNotFound(c.Delete(ctx, o)); err != nil {
			return err
		}
	}
	before := job.DeepCopyObject().(*Job)
	controllerutil.RemoveFinalizer(job, finalizer)
	return c.Patch(ctx, job, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
