package apiserver

import (
	"context"
	"net"
	"slices"
	"sync"
)

// resolvers records which name servers a lookup asks.
type resolvers struct {
	mu    sync.Mutex
	asked []string
}

func (r *resolvers) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		r.mu.Lock()
		if !slices.Contains(r.asked, address) {
			r.asked = append(r.asked, address)
		}
		r.mu.Unlock()
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
}

func (r *resolvers) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}
