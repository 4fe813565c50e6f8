package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// informer follows things with a dynamic and with a typed shared informer through adds, updates, deletes, a connection that breaks,
// and one that breaks for so long that the past is compacted away. Whether lists are streamed is up to KUBE_FEATURE_WatchListClient.
func informer(ctx context.Context, o options) (string, error) {
	client, err := connect(o.kubeconfigs[0], nil)
	if err != nil {
		return "", err
	}
	if err := define(ctx, []dynamic.Interface{client}); err != nil {
		return "", err
	}
	streamed := features.FeatureGates().Enabled(features.WatchListClient)
	said := fmt.Sprintf("lists streamed: %v", streamed)
	for _, kind := range []struct {
		name string
		make func(*rest.Config) (cache.SharedIndexInformer, error)
	}{{"dynamic", dynamicInformer}, {"typed", typedInformer}} {
		run := &informed{client: client, kind: kind.name, etcd: o.etcd, streamed: streamed, events: map[string]string{}}
		if err := run.all(ctx, o.kubeconfigs[0], kind.make); err != nil {
			return "", fmt.Errorf("%s informer, %s: %w", kind.name, said, err)
		}
		said += fmt.Sprintf("; %s: %d events, %d lists, %d watches", kind.name, run.count, run.wire.lists, run.wire.watches)
	}
	return said, nil
}

func dynamicInformer(config *rest.Config) (cache.SharedIndexInformer, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return dynamicinformer.NewFilteredDynamicInformer(client, things, "default", 0, cache.Indexers{}, nil).Informer(), nil
}

// informed is one informer and what it told. Nothing is told twice: events of an object are gathered as `add 0 update 1 delete`.
type informed struct {
	client   dynamic.Interface
	kind     string
	etcd     string
	streamed bool
	wire     wire
	mutex    sync.Mutex
	events   map[string]string
	count    int
}

func (i *informed) all(ctx context.Context, kubeconfig string, make func(*rest.Config) (cache.SharedIndexInformer, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	i.wire.into(config)
	shared, err := make(config)
	if err != nil {
		return err
	}
	if _, err := shared.AddEventHandler(i); err != nil {
		return err
	}
	if err := i.write(ctx, "a 0", "b 0", "c 0", "d 0"); err != nil {
		return err
	}
	go shared.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), shared.HasSynced) {
		return fmt.Errorf("never in step")
	}
	steps := []struct {
		name   string
		act    func() error
		expect map[string]string
	}{
		{"the state", func() error { return nil }, map[string]string{"a": "add 0", "b": "add 0", "c": "add 0", "d": "add 0"}},
		{"changes", func() error { return i.write(ctx, "x 0", "x 1", "x 2", "x -") },
			map[string]string{"x": "add 0 update 1 update 2 delete"}},
		{"a broken connection", func() error { return i.apart(func() error { return i.write(ctx, "a 1", "b -", "y 0") }) },
			map[string]string{"a": "add 0 update 1", "b": "add 0 delete", "y": "add 0"}},
		{"a past compacted away", func() error { return i.apart(func() error { return i.forget(ctx) }) },
			map[string]string{"c": "add 0 update 2", "d": "add 0 delete", "z": "add 0"}},
		{"changes after it", func() error { return i.write(ctx, "c 3", "z -") },
			map[string]string{"c": "add 0 update 2 update 3", "z": "add 0 delete"}},
	}
	want := map[string]string{}
	for _, step := range steps {
		maps.Copy(want, step.expect)
		if err := step.act(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := i.settle(want); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	if keys := shared.GetStore().ListKeys(); len(keys) != 3 {
		return fmt.Errorf("the store has %v", keys)
	}
	if i.wire.resumed == 0 {
		return fmt.Errorf("it never went on at the version it had")
	}
	if err := i.wire.check(i.streamed); err != nil {
		return err
	}
	return i.write(ctx, "a -", "c -", "y -")
}

// forget makes changes and compacts the store, so that only a new list can tell.
func (i *informed) forget(ctx context.Context) error {
	if err := i.write(ctx, "c 1", "c 2", "d -", "z 0", "w 0", "w -"); err != nil {
		return err
	}
	list, err := i.client.Resource(things).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	body := []byte(fmt.Sprintf(`{"revision": %q}`, list.GetResourceVersion()))
	answer, err := http.Post("http://"+i.etcd+"/v3/kv/compaction", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("compaction: %s", answer.Status)
	}
	return nil
}

// apart acts while the informer cannot connect.
func (i *informed) apart(act func() error) error {
	i.wire.cut()
	defer i.wire.mend()
	return act()
}

// write does steps such as `a 0` (create), `a 1` (update) and `a -` (delete).
func (i *informed) write(ctx context.Context, steps ...string) error {
	all := i.client.Resource(things).Namespace("default")
	for _, step := range steps {
		var name, what string
		if _, err := fmt.Sscan(step, &name, &what); err != nil {
			return err
		}
		var err error
		switch what {
		case "-":
			err = all.Delete(ctx, name, metav1.DeleteOptions{})
		case "0":
			_, err = all.Create(ctx, thing(name, 0), metav1.CreateOptions{})
		default:
			var n int64
			if _, err := fmt.Sscan(what, &n); err != nil {
				return err
			}
			_, err = mergePatch(ctx, all, name, object{"spec": object{"n": n}})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

// settle waits until what was told is what happened, and looks once more: what comes twice comes later.
func (i *informed) settle(want map[string]string) error {
	same := func() error {
		i.mutex.Lock()
		defer i.mutex.Unlock()
		if maps.Equal(i.events, want) {
			return nil
		}
		return fmt.Errorf("told %v, happened %v", i.events, want)
	}
	if err := until("all is told", same); err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond)
	return same()
}

func (i *informed) OnAdd(o any, _ bool) { i.note(o, fmt.Sprintf("add %d", numberOf(o))) }

// OnUpdate is told of unchanged objects after each list; those are no changes.
func (i *informed) OnUpdate(before, after any) {
	if version(before) != version(after) {
		i.note(after, fmt.Sprintf("update %d", numberOf(after)))
	}
}

func (i *informed) OnDelete(o any) {
	if gone, is := o.(cache.DeletedFinalStateUnknown); is {
		o = gone.Obj
	}
	i.note(o, "delete")
}

func (i *informed) note(o any, event string) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.count++
	accessor, err := meta.Accessor(o)
	if err != nil {
		i.events[err.Error()] = event
		return
	}
	if told := i.events[accessor.GetName()]; told != "" {
		event = told + " " + event
	}
	i.events[accessor.GetName()] = event
}

func version(o any) string {
	accessor, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return accessor.GetResourceVersion()
}
