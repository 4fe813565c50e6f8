package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	extensionclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applycoordination "k8s.io/client-go/applyconfigurations/coordination/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

// suite has the clients that programs are generated or written with.
type suite struct {
	config     *rest.Config
	typed      kubernetes.Interface
	extensions extensionclient.Interface
}

type step struct {
	name string
	run  func(context.Context, *suite) error
}

// clients sends bodies as protobuf, which is what typed clients of built-in kinds do, and takes JSON too.
func clients(ctx context.Context, o options) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfigs[0])
	if err != nil {
		return "", err
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	s := &suite{config: config}
	if s.typed, err = kubernetes.NewForConfig(protobuf); err != nil {
		return "", err
	}
	if s.extensions, err = extensionclient.NewForConfig(protobuf); err != nil {
		return "", err
	}
	steps := []step{{"config maps", configMaps}, {"secrets", secrets}, {"namespaces", namespaces}, {"leases", leases},
		{"definitions", typedDefinitions}, {"elections", elections}, {"discovery", discovered}, {"dynamic informers", selected},
		{"metadata informers", metadataOnly}, {"watches that go on", retried}, {"pages", paged}, {"the end", undefine}}
	for _, step := range steps {
		if err := step.run(ctx, s); err != nil {
			return "", fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return fmt.Sprintf("%d steps of typed clients", len(steps)), nil
}

func configMaps(ctx context.Context, s *suite) error {
	maps := s.typed.CoreV1().ConfigMaps("default")
	wanted := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "typed", Labels: map[string]string{"app": "x"}},
		Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {0, 255}}}
	made, err := maps.Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if made.Data["a"] != "1" || !bytes.Equal(made.BinaryData["b"], []byte{0, 255}) || made.UID == "" {
		return fmt.Errorf("made %+v", made)
	}
	if _, err := maps.Create(ctx, wanted, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("made twice: %v", err)
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found, err := maps.Get(ctx, "typed", metav1.GetOptions{})
		if err != nil {
			return err
		}
		found.Data["a"] = "2"
		_, err = maps.Update(ctx, found, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("a stale update: %v", err)
	}
	applied, err := maps.Apply(ctx, applycore.ConfigMap("typed", "default").WithData(map[string]string{"c": "3"}),
		metav1.ApplyOptions{FieldManager: "x"})
	if err != nil {
		return err
	}
	if len(applied.Data) != 2 || applied.Data["a"] != "2" {
		return fmt.Errorf("applied %+v", applied.Data)
	}
	conflicting := applycore.ConfigMap("typed", "default").WithData(map[string]string{"a": "3"})
	if _, err := maps.Apply(ctx, conflicting, metav1.ApplyOptions{FieldManager: "x"}); !apierrors.IsConflict(err) {
		return fmt.Errorf("no conflict: %v", err)
	}
	extracted, err := applycore.ExtractConfigMap(applied, "x")
	if err != nil || len(extracted.Data) != 1 {
		return fmt.Errorf("extracted %+v: %v", extracted, err)
	}
	patched, err := maps.Patch(ctx, "typed", types.StrategicMergePatchType, []byte(`{"data":{"a":null},"binaryData":null}`), metav1.PatchOptions{})
	if err != nil || len(patched.Data) != 1 || patched.BinaryData != nil {
		return fmt.Errorf("patched %+v: %v", patched, err)
	}
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "app=x"})
	if err != nil || len(list.Items) != 1 {
		return fmt.Errorf("%+v: %v", list, err)
	}
	if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=x"}); err != nil {
		return err
	}
	if _, err := maps.Get(ctx, "typed", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("found after deletion: %v", err)
	}
	return nil
}

func secrets(ctx context.Context, s *suite) error {
	all := s.typed.CoreV1().Secrets("default")
	made, err := all.Create(ctx, &core.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "typed-"},
		Data: map[string][]byte{"a": []byte("1")}, StringData: map[string]string{"b": "2"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if string(made.Data["a"])+string(made.Data["b"]) != "12" || made.Type != core.SecretTypeOpaque {
		return fmt.Errorf("made %+v", made)
	}
	_, err = all.Create(ctx, &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tls"}, Type: core.SecretTypeTLS}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		return fmt.Errorf("a certificate without one: %v", err)
	}
	list, err := all.List(ctx, metav1.ListOptions{FieldSelector: "type=Opaque,metadata.name=" + made.Name})
	if err != nil || len(list.Items) != 1 {
		return fmt.Errorf("%+v: %v", list, err)
	}
	// Options of a delete are protobuf too.
	uid := made.UID + "x"
	wrong := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if err := all.Delete(ctx, made.Name, wrong); !apierrors.IsConflict(err) {
		return fmt.Errorf("deleted another one: %v", err)
	}
	right := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID}}
	return all.Delete(ctx, made.Name, right)
}

func namespaces(ctx context.Context, s *suite) error {
	all := s.typed.CoreV1().Namespaces()
	if _, err := all.Create(ctx, &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "typed"}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	found, err := all.Get(ctx, "typed", metav1.GetOptions{})
	if err != nil || found.Status.Phase != core.NamespaceActive || found.Labels["kubernetes.io/metadata.name"] != "typed" {
		return fmt.Errorf("%+v: %v", found, err)
	}
	found.Labels["x"] = "y"
	if _, err := all.Update(ctx, found, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return all.Delete(ctx, "typed", metav1.DeleteOptions{})
}

func leases(ctx context.Context, s *suite) error {
	all := s.typed.CoordinationV1().Leases("default")
	now, seconds, holder := metav1.NewMicroTime(time.Now()), int32(15), "me"
	made, err := all.Create(ctx, &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Name: "typed"}, Spec: coordination.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now, AcquireTime: &now}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	// The store has microseconds.
	if !made.Spec.RenewTime.Time.Equal(now.Truncate(time.Microsecond)) || *made.Spec.HolderIdentity != "me" {
		return fmt.Errorf("made %+v for %v", made.Spec, now)
	}
	applied, err := all.Apply(ctx, applycoordination.Lease("typed", "default").WithSpec(
		applycoordination.LeaseSpec().WithHolderIdentity("other")), metav1.ApplyOptions{FieldManager: "x", Force: true})
	if err != nil || *applied.Spec.HolderIdentity != "other" || *applied.Spec.LeaseDurationSeconds != 15 {
		return fmt.Errorf("applied %+v: %v", applied, err)
	}
	return all.Delete(ctx, "typed", metav1.DeleteOptions{})
}

// typedDefinitions makes things known, by a body of whatever form the clientset sends.
func typedDefinitions(ctx context.Context, s *suite) error {
	all := s.extensions.ApiextensionsV1().CustomResourceDefinitions()
	integer := apiextensions.JSONSchemaProps{Type: "integer"}
	spec := apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"n": integer}}
	schema := &apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"spec": spec}}
	_, err := all.Create(ctx, &apiextensions.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definitionName},
		Spec: apiextensions.CustomResourceDefinitionSpec{Group: group, Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: schema}}}}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return until("established", func() error {
		found, err := all.Get(ctx, definitionName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == apiextensions.Established && condition.Status == apiextensions.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("status %+v", found.Status)
	})
}

func undefine(ctx context.Context, s *suite) error {
	return s.extensions.ApiextensionsV1().CustomResourceDefinitions().Delete(ctx, definitionName, metav1.DeleteOptions{})
}
