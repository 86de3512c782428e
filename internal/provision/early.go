package provision

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
)

// BeginJoin begins to probe the API server beside the plan, which is going to ask for it,
// and asks for kubelet's certificate with the bootstrap token, where that waits for nothing
// but the probe. On a machine that is a node already it does nothing.
func (q *Inquiry) BeginJoin(ctx context.Context, st *desired.State) {
	c := q.earlyCheck(st)
	if c == nil {
		return
	}
	certificate, ok := st.Lookup(desired.ClientCertificateID(kubelet.Kubeconfig)).(*desired.ClientCertificate)
	ok = ok && !slices.ContainsFunc(certificate.After, func(id desired.ID) bool { return id != c.ID() })
	q.Probe.Begin(ctx, c, func(over *apiserver.Connections) {
		if ok {
			q.Certificate.Begin(ctx, identity.New(q.Host).Over(over), certificate)
		}
	})
}

// beginProbe begins to probe an API server, nil for none, while facts are gathered, as
// BeginJoin does later.
func (q *Inquiry) beginProbe(ctx context.Context, c *desired.Check) {
	if c != nil && !q.Source.Offline && q.isNoNode() {
		q.Probe.Begin(ctx, c, func(*apiserver.Connections) {})
	}
}

// earlyCheck is the check of the API server of a machine that is no node yet; else nil.
func (q *Inquiry) earlyCheck(st *desired.State) *desired.Check {
	c, ok := st.Lookup(desired.CheckID(desired.CheckAPIServer)).(*desired.Check)
	if !ok || q.Source.Offline || !q.isNoNode() {
		return nil
	}
	return c
}

func (q *Inquiry) isNoNode() bool {
	_, err := q.Host.Lstat(KubeconfigInUse(q.Host))
	return errors.Is(err, fs.ErrNotExist)
}

// KubeconfigInUse is the first of those of kubelet that is there, or may be; berth's where
// none is.
func KubeconfigInUse(h host.FS) string {
	for _, at := range Kubeconfigs(h) {
		if _, err := h.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			return at
		}
	}
	return kubelet.Kubeconfig
}
