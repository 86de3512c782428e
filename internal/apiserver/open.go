package apiserver

import (
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// CanOpen refuses a kubeconfig that nobody can be asked with.
func CanOpen(h host.FS, path string) error {
	c, err := Open(h, path)
	if err == nil {
		c.Close()
	}
	return err
}

// Open makes a client with the credential of a kubeconfig.
func Open(h host.FS, path string) (*Client, error) {
	k, err := kubeconfig.Read(h, path)
	if err != nil {
		return nil, err
	}
	return NewClient(accessOf(k))
}
