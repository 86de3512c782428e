package faults_test

import (
	"slices"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// sharing is a machine on which another contract has put a part of what c wants:
// programs, a directory, files, a certificate.
func sharing(machine func() *memory.Host, c *configuration) func() *memory.Host {
	return func() *memory.Host {
		h := machine()
		st := &desired.State{Owner: desired.OwnerOSC}
		for _, r := range c.state(h).Resources {
			if len(r.Order().After) == 0 && isShared(r.ID()) {
				st.Add(r)
			}
		}
		check(st.Seal())
		if _, err := engine(h, nil, 1).Apply(tctx, st); err != nil {
			panic(err)
		}
		h.Flush()
		h.Advance(time.Minute)
		return h
	}
}

func isShared(id desired.ID) bool {
	return slices.Contains([]desired.ID{
		"artifact:runc", "artifact:kubernetes", "directory:/etc/kubernetes/manifests", "directory:/var/lib/kubelet",
		"file:/etc/containerd/kubenet_template.conf", "file:/etc/kubernetes/azure.json", "trust:aks-custom-ca-0",
	}, id)
}

// forgetful is a machine that has lost its ledger.
func forgetful(machine func() *memory.Host) func() *memory.Host {
	return func() *memory.Host {
		h := machine()
		check(h.Remove(ledgerFile))
		h.Flush()
		return h
	}
}
