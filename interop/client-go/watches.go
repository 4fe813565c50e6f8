package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

const watchesOfServer = 3

// watches writes through every server while watches of each look on. Objects are created, counted up one by one and, every other
// one, deleted, so that the events of an object are known to the last: none may be missing, doubled or out of order.
func watches(ctx context.Context, o options) (string, error) {
	clients := make([]dynamic.Interface, len(o.kubeconfigs))
	for i, kubeconfig := range o.kubeconfigs {
		client, err := connect(kubeconfig, nil)
		if err != nil {
			return "", err
		}
		clients[i] = client
	}
	if err := define(ctx, clients); err != nil {
		return "", err
	}
	var (
		lookers []*looker
		running sync.WaitGroup
		writers = make([]counter, o.writers*len(clients))
	)
	for _, client := range clients {
		for range watchesOfServer {
			l, err := look(ctx, client, len(writers), o.count)
			if err != nil {
				return "", err
			}
			lookers = append(lookers, l)
		}
	}
	for i := range writers {
		w := &writers[i]
		running.Go(func() { w.err = w.run(ctx, clients[i%len(clients)], i, o.count) })
	}
	running.Wait()
	var retries int64
	for _, w := range writers {
		if w.err != nil {
			return "", w.err
		}
		retries += w.retries
	}
	events, ended := 0, 0
	for i, l := range lookers {
		if err := l.finish(); err != nil {
			return "", fmt.Errorf("watch %d: %w", i, err)
		}
		events += l.events
		ended += l.ended
	}
	for _, client := range clients {
		if err := nothingLost(ctx, client, len(writers), o.count); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d objects of %d writes (%d asked again), %d watches saw %d events, each once and in order; %d connections ended",
		len(writers), o.count, retries, len(lookers), events, ended), nil
}

func counted(i int) string { return fmt.Sprintf("c%d", i) }

func deleted(i int) bool { return i%2 == 1 }

// counter writes one object. What is asked again may have been done: then the answer says so, and there is no second event.
type counter struct {
	retries int64
	err     error
}

func (w *counter) run(ctx context.Context, client dynamic.Interface, i, count int) error {
	all := client.Resource(things).Namespace("default")
	name := counted(i)
	err := again("create", &w.retries, func() error {
		_, err := all.Create(ctx, thing(name, 0), metav1.CreateOptions{})
		if w.retries > 0 && apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	for n := 1; n <= count && err == nil; n++ {
		err = again("patch", &w.retries, func() error {
			_, err := mergePatch(ctx, all, name, object{"spec": object{"n": n}})
			return err
		})
	}
	if err != nil || !deleted(i) {
		return err
	}
	return again("delete", &w.retries, func() error {
		err := all.Delete(ctx, name, metav1.DeleteOptions{})
		if w.retries > 0 && apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// looker follows a watch, and goes on at the last version it saw if the connection ends.
type looker struct {
	events, ended int
	done          chan error
}

func look(ctx context.Context, client dynamic.Interface, objects, count int) (*looker, error) {
	all := client.Resource(things).Namespace("default")
	list, err := all.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	l := &looker{done: make(chan error, 1)}
	expected := objects*(count+1) + objects/2
	go func() { l.done <- l.follow(ctx, all, list.GetResourceVersion(), expected, count) }()
	return l, nil
}

func (l *looker) follow(ctx context.Context, all dynamic.ResourceInterface, version string, expected, count int) error {
	seen := map[string]int64{}
	last := int64(0)
	for l.events < expected {
		stream, err := all.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			if !unanswered(err) {
				return err
			}
			time.Sleep(pause)
			continue
		}
		for event := range stream.ResultChan() {
			object, is := event.Object.(*unstructured.Unstructured)
			if event.Type == watch.Error || !is {
				return fmt.Errorf("after %d of %d events: %v", l.events, expected, apierrors.FromObject(event.Object))
			}
			revision, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
			if err != nil || revision <= last {
				return fmt.Errorf("version %q after %d", object.GetResourceVersion(), last)
			}
			if err := next(seen, event.Type, object, count); err != nil {
				return err
			}
			last, version = revision, object.GetResourceVersion()
			if l.events++; l.events == expected {
				stream.Stop()
				return nil
			}
		}
		l.ended++
	}
	return nil
}

// next holds an event to the only one that can follow for its object.
func next(seen map[string]int64, kind watch.EventType, o *unstructured.Unstructured, count int) error {
	before, known := seen[o.GetName()]
	n := number(o)
	var right bool
	switch kind {
	case watch.Added:
		right = !known && n == 0
	case watch.Modified:
		right = known && n == before+1
	case watch.Deleted:
		right = known && n == before && n == int64(count)
	}
	if !right {
		return fmt.Errorf("%s of %s with %d after %d (known: %v)", kind, o.GetName(), n, before, known)
	}
	seen[o.GetName()] = n
	if kind == watch.Deleted {
		delete(seen, o.GetName())
	}
	return nil
}

// finish waits until a watch has all events that there were.
func (l *looker) finish() error {
	select {
	case err := <-l.done:
		return err
	case <-time.After(patience):
		return fmt.Errorf("%d events after %v", l.events, patience)
	}
}

func nothingLost(ctx context.Context, client dynamic.Interface, objects, count int) error {
	list, err := client.Resource(things).Namespace("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var got, want []string
	for _, item := range list.Items {
		got = append(got, fmt.Sprintf("%s %d", item.GetName(), number(&item)))
	}
	for i := range objects {
		if !deleted(i) {
			want = append(want, fmt.Sprintf("%s %d", counted(i), count))
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("listed %v, written %v", got, want)
	}
	return nil
}
