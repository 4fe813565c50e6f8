package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var version = schema.GroupVersion{Group: "batch.example.com", Version: "v1"}

// Job is the kind as kubebuilder would have it.
type Job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              JobSpec   `json:"spec,omitempty"`
	Status            JobStatus `json:"status,omitempty"`
}

type JobSpec struct {
	Image    string `json:"image"`
	Replicas *int32 `json:"replicas,omitempty"`
	Queue    string `json:"queue,omitempty"`
}

type JobStatus struct {
	Observed   int64              `json:"observedGeneration,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type JobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Job `json:"items"`
}

func (j *Job) DeepCopyInto(to *Job) {
	*to = *j
	to.ObjectMeta = *j.ObjectMeta.DeepCopy()
	if j.Spec.Replicas != nil {
		replicas := *j.Spec.Replicas
		to.Spec.Replicas = &replicas
	}
	to.Status.Conditions = append([]metav1.Condition(nil), j.Status.Conditions...)
}

func (j *Job) DeepCopyObject() runtime.Object {
	to := new(Job)
	j.DeepCopyInto(to)
	return to
}

func (l *JobList) DeepCopyObject() runtime.Object {
	to := &JobList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy(), Items: make([]Job, len(l.Items))}
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&to.Items[i])
	}
	return to
}
