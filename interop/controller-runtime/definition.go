package main

import (
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// definition is what controller-gen would write for Job.
func definition() *apiextensions.CustomResourceDefinition {
	one := 1.0
	spec := apiextensions.JSONSchemaProps{Type: "object", Required: []string{"image"}, Properties: map[string]apiextensions.JSONSchemaProps{
		"image":    {Type: "string", MinLength: new(int64)},
		"replicas": {Type: "integer", Format: "int32", Minimum: &one, Default: &apiextensions.JSON{Raw: []byte("1")}},
		"queue":    {Type: "string"},
	}}
	text := apiextensions.JSONSchemaProps{Type: "string"}
	condition := apiextensions.JSONSchemaProps{Type: "object", Required: []string{"type", "status", "lastTransitionTime", "reason", "message"},
		Properties: map[string]apiextensions.JSONSchemaProps{"type": text, "status": text, "reason": text, "message": text,
			"observedGeneration": {Type: "integer", Format: "int64"}, "lastTransitionTime": {Type: "string", Format: "date-time"}}}
	list := "map"
	status := apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{
		"observedGeneration": {Type: "integer", Format: "int64"},
		"conditions": {Type: "array", XListType: &list, XListMapKeys: []string{"type"},
			Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &condition}},
	}}
	schema := &apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{
		"apiVersion": text, "kind": text, "metadata": {Type: "object"}, "spec": spec, "status": status}}
	return &apiextensions.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "jobs.batch.example.com"},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: version.Group, Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: "jobs", Singular: "job", Kind: "Job", ListKind: "JobList"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: version.Version, Served: true, Storage: true,
				Schema:       &apiextensions.CustomResourceValidation{OpenAPIV3Schema: schema},
				Subresources: &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}
