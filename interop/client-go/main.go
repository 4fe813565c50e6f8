// scenario runs client-go against the API servers that the kubeconfigs name. Each mode says what it saw in one line that begins with
// `ok`, or why it failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// options are what all modes can be told.
type options struct {
	kubeconfigs repeated
	etcd        string
	pids        repeated
	count       int
	writers     int
	gates       bool
}

// repeated is a flag that can be given more than once.
type repeated []string

func (s *repeated) String() string         { return fmt.Sprint([]string(*s)) }
func (s *repeated) Set(value string) error { *s = append(*s, value); return nil }

var modes = map[string]func(context.Context, options) (string, error){
	"clients":  clients,
	"figures":  figures,
	"flips":    flips,
	"gated":    gated,
	"informer": informer,
	"watches":  watches,
}

func main() {
	said, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		os.Exit(1)
	}
	fmt.Println("ok", said)
}

func run(args []string) (string, error) {
	if len(args) == 0 || modes[args[0]] == nil {
		return "", errors.New("give a mode: clients, figures, flips, gated, informer or watches")
	}
	// What client-go says about connections that break is meant to happen here.
	klog.SetLogger(logr.Discard())
	var o options
	set := flag.NewFlagSet(args[0], flag.ContinueOnError)
	set.Var(&o.kubeconfigs, "kubeconfig", "of an API server; may be given more than once")
	set.StringVar(&o.etcd, "etcd", "", "host:port of the store")
	set.Var(&o.pids, "pid", "a process whose CPU is counted; may be given more than once")
	set.IntVar(&o.count, "count", 100, "how many flips, writes of an object, or objects")
	set.IntVar(&o.writers, "writers", 2, "writers on each server")
	set.BoolVar(&o.gates, "gates", false, "put fields behind gates that are off")
	if err := set.Parse(args[1:]); err != nil {
		return "", err
	}
	if len(o.kubeconfigs) == 0 {
		return "", errors.New("give at least one -kubeconfig")
	}
	return modes[args[0]](context.Background(), o)
}
