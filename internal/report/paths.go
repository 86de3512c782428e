package report

import (
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/unitname"

	"github.com/berth-dev/berth/internal/paths"
)

// The paths that AKS publishes and that support teams know.
const (
	ConfigPath     = "/opt/azure/containers/aks-node-controller-config.json"
	ResultPath     = "/var/log/azure/aks/provision.json"
	SentinelDir    = "/opt/azure/containers"
	SentinelPath   = SentinelDir + "/provision.complete"
	ImageBuildPath = SentinelDir + "/base_prep.complete"
	LogPath        = exitcode.LogPath
	ClusterLog     = "/var/log/azure/cluster-provision.log"
	AKSLogDir      = "/var/log/azure/aks"
	EventsDir      = "/var/log/azure/Microsoft.Azure.Extensions.CustomScript/events"
	TimelinePath   = paths.StateDir + "/timeline.json"
	ServiceUnit    = unitname.Controller
)
