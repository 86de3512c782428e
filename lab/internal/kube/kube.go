// Package kube connects client-go to an API server inside a lab's namespace
// and makes the objects that a cluster needs before nodes can join.
package kube

import (
	"fmt"

	"github.com/berth-dev/berth/lab/internal/netns"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config loads a kubeconfig; connections are opened inside ns.
func Config(path string, ns netns.Namespace) (*rest.Config, error) {
	c, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	c.Dial = ns.Dial
	c.QPS, c.Burst = 200, 400
	return c, nil
}
