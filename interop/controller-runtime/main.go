// scenario runs a manager of controller-runtime against the API server that the kubeconfig names. It says what it saw in one line that
// begins with `ok`, or why it failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	// controller-runtime brings the flag -kubeconfig.
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	config, err := ctrl.GetConfig()
	if err == nil {
		err = run(context.Background(), config)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
	fmt.Println("ok", len(steps), "steps")
}

func run(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	existing := true
	environment := &envtest.Environment{Config: config, UseExistingCluster: &existing,
		CRDInstallOptions: envtest.CRDInstallOptions{CRDs: []*apiextensions.CustomResourceDefinition{definition()}, CleanUpAfterUse: true}}
	if _, err := environment.Start(); err != nil {
		return fmt.Errorf("envtest: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := clientgo.AddToScheme(scheme); err != nil {
		return err
	}
	if err := apiextensions.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(version, &Job{}, &JobList{})
	metav1.AddToGroupVersion(scheme, version)
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "jobs", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true})
	if err != nil {
		return fmt.Errorf("the manager: %w", err)
	}
	if err := (&controller{mgr.GetClient()}).setup(mgr); err != nil {
		return fmt.Errorf("the controller: %w", err)
	}
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if err := tell(ctx, mgr, direct); err != nil {
		return err
	}
	return environment.Stop()
}

// tell runs the steps beside the manager, and waits for its end.
func tell(ctx context.Context, mgr ctrl.Manager, direct client.Client) error {
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	w := &world{Client: direct, cache: mgr.GetCache(), cached: mgr.GetClient(), elected: mgr.Elected()}
	for _, step := range steps {
		if err := step.run(ctx, w); err != nil {
			stop()
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		return fmt.Errorf("the manager ended: %w", err)
	}
	return released(ctx, direct)
}
