package agent

import (
	"bytes"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/host"
)

// Labels of the Node, as published.
const (
	versionLabel = "worker.gardener.cloud/kubernetes-version"
	roleLabel    = "node-role.kubernetes.io/"
	zoneLabel    = "topology.kubernetes.io/zone"
)

// labels are those that go with a document.
func labels(h host.FS, c *config.NodeAgent, t *reconcile.Target) map[string]string {
	out := map[string]string{versionLabel: c.Controllers.OperatingSystemConfig.KubernetesVersion, roleLabel + "worker": ""}
	if t.ControlPlane {
		delete(out, roleLabel+"worker")
		out[roleLabel+"control-plane"] = ""
	}
	if zone, err := h.ReadFile(config.Zone); err == nil && len(bytes.TrimSpace(zone)) > 0 {
		out[zoneLabel] = string(bytes.TrimSpace(zone))
	}
	return out
}
