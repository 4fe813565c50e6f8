//go:build !older

package main

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func apply(ctx context.Context, c client.Client, o *unstructured.Unstructured, owner string) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(owner), client.ForceOwnership)
}

func applyStatus(ctx context.Context, c client.Client, o *unstructured.Unstructured, owner string) error {
	return c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(owner), client.ForceOwnership)
}
