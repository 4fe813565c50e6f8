package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	definitionsBeside = 20
	listed            = 500
	listRounds        = 40
	watchers          = 1000
	watchConnections  = 10
	// ticksOfSecond is USER_HZ, which is 100 on Linux for all that read /proc.
	ticksOfSecond = 100
)

// figure is what one kind of request took of the processes that were named, in milliseconds of CPU.
type figure struct {
	Name string    `json:"name"`
	CPU  []float64 `json:"cpu_ms"`
	Took float64   `json:"took_ms"`
}

// figures counts the CPU of servers for each create, update, list and event of a watch, and says it as a line of JSON.
func figures(ctx context.Context, o options) (string, error) {
	client, err := connect(o.kubeconfigs[0], nil)
	if err != nil {
		return "", err
	}
	m := &measure{pids: o.pids, client: client}
	if err := m.define(ctx); err != nil {
		return "", err
	}
	idle, err := memory(o.pids)
	if err != nil {
		return "", err
	}
	steps := []struct {
		name  string
		count int
		act   func(i int) error
	}{
		{"create", o.count, func(i int) error { return m.create(ctx, i) }},
		{"update", o.count, func(i int) error { return m.update(ctx, i, 1) }},
		{"list of 500", listRounds, func(int) error { return m.list(ctx) }},
	}
	for _, step := range steps {
		if err := m.timed(step.name, step.count, step.act); err != nil {
			return "", fmt.Errorf("%s: %w", step.name, err)
		}
	}
	if err := m.watched(ctx, o.kubeconfigs[0], 100); err != nil {
		return "", fmt.Errorf("watches: %w", err)
	}
	line, err := json.Marshal(object{"idle_kb": idle, "figures": m.figures})
	return string(line), err
}

type measure struct {
	pids    []string
	client  dynamic.Interface
	figures []figure
}

func (m *measure) define(ctx context.Context) error {
	for i := range definitionsBeside - 1 {
		beside := definition(fmt.Sprintf("others%d", i), fmt.Sprintf("Other%d", i))
		if _, err := m.client.Resource(definitions).Create(ctx, beside, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := define(ctx, []dynamic.Interface{m.client}); err != nil {
		return err
	}
	// What is done once, such as a new OpenAPI, is no part of a request.
	time.Sleep(5 * time.Second)
	return nil
}

func (m *measure) timed(name string, count int, act func(i int) error) error {
	const atOnce = 4
	before, begin := cpu(m.pids), time.Now()
	var running sync.WaitGroup
	errs := make([]error, atOnce)
	for worker := range atOnce {
		running.Go(func() {
			for i := worker; i < count && errs[worker] == nil; i += atOnce {
				errs[worker] = act(i)
			}
		})
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	m.note(name, count, before, time.Since(begin))
	return nil
}

func (m *measure) note(name string, count int, before []float64, took time.Duration) {
	after := cpu(m.pids)
	for i := range after {
		after[i] = (after[i] - before[i]) / float64(count)
	}
	m.figures = append(m.figures, figure{name, after, float64(took.Milliseconds()) / float64(count)})
}

func named(i int) string { return fmt.Sprintf("f%06d", i) }

func (m *measure) create(ctx context.Context, i int) error {
	made := thing(named(i), 0)
	made.Object["spec"].(object)["text"] = strings.Repeat("x", 1000)
	_, err := m.client.Resource(things).Namespace("default").Create(ctx, made, metav1.CreateOptions{})
	return err
}

func (m *measure) update(ctx context.Context, i int, n int64) error {
	_, err := mergePatch(ctx, m.client.Resource(things).Namespace("default"), named(i), object{"spec": object{"n": n}})
	return err
}

func (m *measure) list(ctx context.Context) error {
	page, err := m.client.Resource(things).Namespace("default").List(ctx, metav1.ListOptions{Limit: listed})
	if err == nil && len(page.Items) != listed {
		return fmt.Errorf("%d items on a page of %d", len(page.Items), listed)
	}
	return err
}

// watched counts an event for each watch that is told of it. The updates that cause them are a thousandth of what is counted.
func (m *measure) watched(ctx context.Context, kubeconfig string, updates int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list, err := m.client.Resource(things).Namespace("default").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	var seen atomic.Int64
	var clients []dynamic.Interface
	for i := range watchConnections {
		client, err := connect(kubeconfig, func(config *rest.Config) {
			config.UserAgent = fmt.Sprintf("watcher-%d", i)
			config.Dial = (&wire{}).dial
		})
		if err != nil {
			return err
		}
		clients = append(clients, client)
	}
	for i := range watchers {
		options := metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}
		stream, err := clients[i%watchConnections].Resource(things).Namespace("default").Watch(ctx, options)
		if err != nil {
			return fmt.Errorf("watch %d: %w", i, err)
		}
		go func() {
			for event := range stream.ResultChan() {
				if event.Type == watch.Modified {
					seen.Add(1)
				}
			}
		}()
	}
	time.Sleep(2 * time.Second)
	before, begin := cpu(m.pids), time.Now()
	for i := range updates {
		if err := m.update(ctx, i, 2); err != nil {
			return err
		}
	}
	all := int64(updates) * watchers
	err = until("all events are seen", func() error {
		if seen.Load() < all {
			return fmt.Errorf("%d of %d", seen.Load(), all)
		}
		return nil
	})
	if err == nil {
		m.note("watch event", int(all), before, time.Since(begin))
	}
	return err
}

// cpu is what each process has used so far, in milliseconds.
func cpu(pids []string) []float64 {
	used := make([]float64, len(pids))
	for i, pid := range pids {
		stat, _ := os.ReadFile("/proc/" + pid + "/stat")
		// The name of the program may have spaces; it ends with the last parenthesis.
		_, rest, _ := strings.Cut(string(stat), ") ")
		words := strings.Fields(rest)
		if len(words) < 13 {
			continue
		}
		user, _ := strconv.ParseFloat(words[11], 64)
		system, _ := strconv.ParseFloat(words[12], 64)
		used[i] = (user + system) * 1000 / ticksOfSecond
	}
	return used
}

// memory is what each process holds resident, in kB.
func memory(pids []string) ([]int, error) {
	held := make([]int, len(pids))
	for i, pid := range pids {
		status, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(status)) {
			if value, is := strings.CutPrefix(line, "VmRSS:"); is {
				fmt.Sscan(value, &held[i])
			}
		}
	}
	return held, nil
}
