package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Thing is the kind as a generated client would have it.
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ThingSpec `json:"spec"`
}

type ThingSpec struct {
	N int64 `json:"n"`
}

type ThingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Thing `json:"items"`
}

func (t *Thing) DeepCopyObject() runtime.Object {
	c := *t
	c.ObjectMeta = *t.ObjectMeta.DeepCopy()
	return &c
}

func (l *ThingList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Thing))
	}
	return &c
}

func numberOf(o any) int64 {
	switch o := o.(type) {
	case *Thing:
		return o.Spec.N
	case *unstructured.Unstructured:
		return number(o)
	}
	return -1
}

func typedInformer(config *rest.Config) (cache.SharedIndexInformer, error) {
	version := schema.GroupVersion{Group: group, Version: "v1"}
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(version, &Thing{}, &ThingList{})
	metav1.AddToGroupVersion(scheme, version)
	config.GroupVersion = &version
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	source := cache.NewListWatchFromClient(client, "things", "default", fields.Everything())
	return cache.NewSharedIndexInformer(source, &Thing{}, 0, cache.Indexers{}), nil
}
