package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
)

// wire is the way of one client to its server: it can be cut, and knows what went over it.
type wire struct {
	mutex                            sync.Mutex
	isCut                            bool
	open                             []net.Conn
	lists, watches, streams, resumed int
}

func (w *wire) into(config *rest.Config) {
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	config.Dial = w.dial
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{w, next} })
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.isCut {
		// As if nobody listened: then client-go goes on where it was, after any other failure it lists anew.
		return nil, fmt.Errorf("the wire is cut: %w", syscall.ECONNREFUSED)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		w.open = append(w.open, conn)
	}
	return conn, err
}

func (w *wire) cut() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.isCut = true
	for _, conn := range w.open {
		conn.Close()
	}
	w.open = nil
}

func (w *wire) mend() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.isCut = false
}

type counting struct {
	wire *wire
	next http.RoundTripper
}

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(request)
	if err != nil {
		return answer, err
	}
	c.wire.mutex.Lock()
	defer c.wire.mutex.Unlock()
	query := request.URL.Query()
	switch {
	case query.Get("watch") != "true" && query.Get("watch") != "1":
		c.wire.lists++
	case query.Get("sendInitialEvents") == "true":
		c.wire.streams++
	default:
		c.wire.watches++
		if query.Get("resourceVersion") != "" {
			c.wire.resumed++
		}
	}
	return answer, err
}

// check holds the requests to the way in which the client was told to list: twice, as the past was lost once.
func (w *wire) check(streamed bool) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	listed, other := w.lists, w.streams
	if streamed {
		listed, other = w.streams, w.lists
	}
	if listed < 2 || other != 0 {
		return fmt.Errorf("streamed %v: %d lists, %d streamed lists, %d watches", streamed, w.lists, w.streams, w.watches)
	}
	return nil
}
