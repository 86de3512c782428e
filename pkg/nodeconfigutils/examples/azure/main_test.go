package main

import (
	"reflect"
	"testing"

	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

func TestScaleSet(t *testing.T) {
	got := scaleSet("westeurope", "Standard_D4ds_v5", &nodeconfigutils.NodeBootstrapping{CustomData: "ZGF0YQ==", CSE: nodeconfigutils.CSE})
	profile := got.Properties.VirtualMachineProfile
	if *profile.OSProfile.CustomData != "ZGF0YQ==" {
		t.Error("custom data is not in the profile")
	}
	want := map[string]any{"commandToExecute": nodeconfigutils.CSE}
	if got := profile.ExtensionProfile.Extensions[0].Properties.ProtectedSettings; !reflect.DeepEqual(got, want) {
		t.Errorf("extension runs %v", got)
	}
}
