package e2e

import (
	"encoding/base64"
	"testing"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// nodeConfig is the lab's configuration of a node with a test's changes.
func nodeConfig(t *testing.T, l *lab.Lab, edit ...func(*aksnodeconfigv1.Configuration)) *aksnodeconfigv1.Configuration {
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

// customData is the decoded CustomData of a configuration.
func customData(t *testing.T, cfg *aksnodeconfigv1.Configuration) []byte {
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
