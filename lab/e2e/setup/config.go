package setup

import (
	"encoding/base64"
	"testing"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// The files that provisioning reads and leaves.
const (
	ConfigPath   = nodeconfigutils.ConfigPath
	ResultPath   = "/var/log/azure/aks/provision.json"
	SentinelPath = "/opt/azure/containers/provision.complete"
)

// The names under which the program is installed.
const (
	BerthPath      = "/usr/local/bin/berth"
	ControllerPath = "/opt/azure/containers/aks-node-controller"
)

// Config is the lab's configuration of a node with a test's changes.
func Config(t *testing.T, l *lab.Lab, edit ...func(*aksnodeconfigv1.Configuration)) *aksnodeconfigv1.Configuration {
	t.Helper()
	cfg, err := l.NodeConfiguration()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range edit {
		f(cfg)
	}
	return cfg
}

// Document is a configuration as it stands on the disk.
func Document(t *testing.T, cfg *aksnodeconfigv1.Configuration) []byte {
	t.Helper()
	b, err := nodeconfigutils.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// CustomData is the decoded CustomData of a configuration.
func CustomData(t *testing.T, cfg *aksnodeconfigv1.Configuration) []byte {
	t.Helper()
	boot, err := nodeconfigutils.GetNodeBootstrapping(cfg)
	if err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(boot.CustomData)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
