package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// interval is from when to when something was asked and answered, and whether the gate was on by it.
type interval struct {
	from, to time.Time
	on       bool
}

// heard collects the warnings of one client.
type heard struct{ count atomic.Int64 }

func (h *heard) HandleWarningHeader(int, string, string) { h.count.Add(1) }

// flips turns a gate over through all servers in turn while writers write through each, and holds every answered write against the
// last flip that was answered before it.
func flips(ctx context.Context, o options) (string, error) {
	clients := make([]dynamic.Interface, len(o.kubeconfigs))
	for i, kubeconfig := range o.kubeconfigs {
		client, err := connect(kubeconfig, nil)
		if err != nil {
			return "", err
		}
		clients[i] = client
	}
	begin := time.Now()
	if err := define(ctx, clients, gate(false)); err != nil {
		return "", err
	}
	turned := []interval{{begin, time.Now(), false}}
	var (
		stop    atomic.Bool
		running sync.WaitGroup
		writers = make([]writer, o.writers*len(clients))
	)
	for i := range writers {
		w := &writers[i]
		if err := w.begin(ctx, fmt.Sprintf("t%d", i), o.kubeconfigs[i%len(clients)]); err != nil {
			return "", err
		}
		running.Go(func() { w.err = w.run(ctx, &stop) })
	}
	// Whoever has seen a flip answered asks all servers at once: this is when one of them is most likely to be behind.
	probes := make([]writer, len(clients))
	for i := range probes {
		if err := probes[i].begin(ctx, fmt.Sprintf("p%d", i), o.kubeconfigs[i]); err != nil {
			return "", err
		}
	}
	var retries int64
	for n := range o.count {
		flip, err := turn(ctx, clients[n/2%len(clients)], n%2 == 0, &retries)
		if err != nil {
			stop.Store(true)
			return "", fmt.Errorf("flip %d: %w", n, err)
		}
		turned = append(turned, flip)
		var asked sync.WaitGroup
		for i := range probes {
			asked.Go(func() { probes[i].err = errors.Join(probes[i].err, probes[i].write(ctx)) })
		}
		asked.Wait()
	}
	stop.Store(true)
	running.Wait()
	return verdict(turned, slices.Concat(pointers(writers), pointers(probes)), retries)
}

// turn is one flip; asked again where the store did not answer, which makes its interval longer.
func turn(ctx context.Context, client dynamic.Interface, on bool, retries *int64) (interval, error) {
	from := time.Now()
	patch := object{"spec": object{"customFeatureGates": object{"featureGates": []any{gate(on)}}}}
	err := again("flip", retries, func() error {
		_, err := mergePatch(ctx, client.Resource(definitions), definitionName, patch)
		return err
	})
	return interval{from, time.Now(), on}, err
}

// writer writes a new number into its object again and again.
type writer struct {
	name     string
	all      dynamic.ResourceInterface
	warnings heard
	n        int64
	answers  []interval
	errors   int64
	err      error
}

func (w *writer) begin(ctx context.Context, name, kubeconfig string) error {
	client, err := connect(kubeconfig, func(config *rest.Config) { config.WarningHandler = &w.warnings })
	if err != nil {
		return err
	}
	w.name, w.all = name, client.Resource(things).Namespace("default")
	_, err = w.all.Create(ctx, thing(name, 0), metav1.CreateOptions{})
	return err
}

func (w *writer) run(ctx context.Context, stop *atomic.Bool) error {
	for !stop.Load() {
		if err := w.write(ctx); err != nil {
			return err
		}
	}
	return nil
}

// write is one write: when, and whether its number was taken. Who is not heard must be told.
func (w *writer) write(ctx context.Context) error {
	w.n++
	told, from := w.warnings.count.Load(), time.Now()
	answer, err := mergePatch(ctx, w.all, w.name, object{"spec": object{"n": w.n}})
	if err != nil && unanswered(err) {
		w.errors++
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	on := number(answer) == w.n
	if on == (w.warnings.count.Load() > told) {
		return fmt.Errorf("%s: taken %v, and %d warnings", w.name, on, w.warnings.count.Load()-told)
	}
	w.answers = append(w.answers, interval{from, time.Now(), on})
	return nil
}

// verdict counts the writes during which the gate can have had one state only, and those of them that say otherwise.
func verdict(turned []interval, writers []*writer, retries int64) (string, error) {
	begin := turned[0].from
	judged, answers, failed := 0, 0, int64(0)
	var wrong []string
	for _, w := range writers {
		if w.err != nil {
			return "", w.err
		}
		answers += len(w.answers)
		failed += w.errors
		for _, answer := range w.answers {
			state, sure := stateDuring(turned, answer)
			if sure {
				judged++
			}
			if sure && state != answer.on {
				wrong = append(wrong, fmt.Sprintf("%s: gate on %v, taken %v, asked at %v for %v",
					w.name, state, answer.on, answer.from.Sub(begin), answer.to.Sub(answer.from)))
			}
		}
	}
	said := fmt.Sprintf("%d flips (%d asked again), %d answered writes, %d not answered, %d judged, %d wrong",
		len(turned)-1, retries, answers, failed, judged, len(wrong))
	if len(wrong) > 0 || judged < len(turned)/2 {
		return "", fmt.Errorf("%s: %v", said, wrong)
	}
	return said, nil
}

func pointers(writers []writer) []*writer {
	all := make([]*writer, len(writers))
	for i := range writers {
		all[i] = &writers[i]
	}
	return all
}

// stateDuring is the state by the last flip answered before a write, and whether no other can have come in between.
func stateDuring(turned []interval, write interval) (bool, bool) {
	state := false
	for _, flip := range turned {
		switch {
		case !flip.to.After(write.from):
			state = flip.on
		case flip.from.Before(write.to):
			return false, false
		default:
			return state, true
		}
	}
	return state, true
}
