package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	discoverycache "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
)

// elections: of two who want to lead, the second does when the first lets go.
func elections(ctx context.Context, s *suite) error {
	led := make(chan string, 2)
	lead := func(ctx context.Context, name string) {
		lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: "leader", Namespace: "default"},
			Client: s.typed.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: name}}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{Lock: lock, ReleaseOnCancel: true,
			LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 200 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { led <- name }, OnStoppedLeading: func() {}}})
	}
	first, letGo := context.WithCancel(ctx)
	second, end := context.WithCancel(ctx)
	defer end()
	go lead(first, "one")
	if err := leads(led, "one"); err != nil {
		letGo()
		return err
	}
	go lead(second, "two")
	letGo()
	return leads(led, "two")
}

func leads(led <-chan string, wanted string) error {
	select {
	case name := <-led:
		if name != wanted {
			return fmt.Errorf("%s leads", name)
		}
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("%s does not lead", wanted)
	}
}

func discovered(_ context.Context, s *suite) error {
	cached := discoverycache.NewMemCacheClient(s.typed.Discovery())
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	for resource, kind := range map[string]string{"cm": "ConfigMap", "ns": "Namespace", "thing": "Thing", "things": "Thing", "leases": "Lease"} {
		found, err := mapper.KindFor(schema.GroupVersionResource{Resource: resource})
		if err != nil || found.Kind != kind {
			return fmt.Errorf("%s is %v: %w", resource, found, err)
		}
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: "Thing"})
	if err != nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return fmt.Errorf("%+v: %w", mapping, err)
	}
	if _, err := mapper.RESTMapping(schema.GroupKind{Group: group, Kind: "Other"}); !meta.IsNoMatchError(err) {
		return fmt.Errorf("an unknown kind: %v", err)
	}
	return nil
}

// make creates things n0, n1 and so on.
func makeThings(ctx context.Context, client dynamic.Interface, prefix string, count int) error {
	for n := range count {
		if _, err := client.Resource(things).Namespace("default").Create(ctx, thing(fmt.Sprintf("%s%03d", prefix, n), int64(n)), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func keys(store cache.Store) string {
	names := store.ListKeys()
	sort.Strings(names)
	return strings.ReplaceAll(strings.Join(names, " "), "default/", "")
}

// selected: informers of some objects alone.
func selected(ctx context.Context, s *suite) error {
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		return err
	}
	if err := makeThings(ctx, client, "n", 3); err != nil {
		return err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "default", func(o *metav1.ListOptions) { o.LabelSelector = "pick=yes" })
	informer := factory.ForResource(things).Informer()
	running, stop := context.WithCancel(ctx)
	defer stop()
	factory.Start(running.Done())
	factory.WaitForCacheSync(running.Done())
	all := client.Resource(things).Namespace("default")
	for _, change := range []struct{ name, label, wanted string }{{"n001", "yes", "n001"}, {"n002", "yes", "n001 n002"}, {"n001", "no", "n002"}} {
		found, err := all.Get(ctx, change.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		found.SetLabels(map[string]string{"pick": change.label})
		if _, err := all.Update(ctx, found, metav1.UpdateOptions{}); err != nil {
			return err
		}
		err = until("picked", func() error {
			if found := keys(informer.GetStore()); found != change.wanted {
				return fmt.Errorf("%q instead of %q", found, change.wanted)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func metadataOnly(ctx context.Context, s *suite) error {
	client, err := metadata.NewForConfig(s.config)
	if err != nil {
		return err
	}
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	informer := factory.ForResource(things).Informer()
	running, stop := context.WithCancel(ctx)
	defer stop()
	factory.Start(running.Done())
	factory.WaitForCacheSync(running.Done())
	if found := keys(informer.GetStore()); found != "n000 n001 n002" {
		return fmt.Errorf("found %q", found)
	}
	if err := client.Resource(things).Namespace("default").Delete(ctx, "n000", metav1.DeleteOptions{}); err != nil {
		return err
	}
	return until("deleted", func() error {
		if found := keys(informer.GetStore()); found != "n001 n002" {
			return fmt.Errorf("found %q", found)
		}
		return nil
	})
}

// retried: a watch that the server ends every second tells each change once.
func retried(ctx context.Context, s *suite) error {
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		return err
	}
	all := client.Resource(things).Namespace("default")
	list, err := all.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		second := int64(1)
		o.TimeoutSeconds = &second
		return all.Watch(ctx, o)
	}}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), source)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for n := range 8 {
		if err := makeThings(ctx, client, fmt.Sprintf("w%d-", n), 1); err != nil {
			return err
		}
		select {
		case event := <-watcher.ResultChan():
			found, err := meta.Accessor(event.Object)
			if err != nil || event.Type != watch.Added || found.GetName() != fmt.Sprintf("w%d-000", n) {
				return fmt.Errorf("told %v %v: %v", event.Type, event.Object, err)
			}
		case <-time.After(20 * time.Second):
			return fmt.Errorf("change %d is not told", n)
		}
		time.Sleep(400 * time.Millisecond)
	}
	return nil
}

// paged: all objects come once, in pages, and a token of nobody is refused.
func paged(ctx context.Context, s *suite) error {
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		return err
	}
	all := client.Resource(things).Namespace("default")
	if err := makeThings(ctx, client, "p", 25); err != nil {
		return err
	}
	pages := 0
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		pages++
		return all.List(ctx, o)
	})
	p.PageSize = 10
	seen := map[string]bool{}
	err = p.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		found, err := meta.Accessor(o)
		if err == nil && seen[found.GetName()] {
			err = errors.New("told twice: " + found.GetName())
		}
		seen[found.GetName()] = true
		return err
	})
	if err != nil || len(seen) != 35 || pages != 4 {
		return fmt.Errorf("%d objects in %d pages: %w", len(seen), pages, err)
	}
	if _, err := all.List(ctx, metav1.ListOptions{Limit: 1, Continue: "nobody's"}); !apierrors.IsBadRequest(err) {
		return fmt.Errorf("a token of nobody: %v", err)
	}
	return nil
}
