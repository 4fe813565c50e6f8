//go:build suite

// Package suite names the packages whose tests are run, so that go.mod and go.sum know what these need.
package suite

import (
	_ "k8s.io/apiextensions-apiserver/test/integration"
	_ "k8s.io/apiextensions-apiserver/test/integration/conversion"
)
