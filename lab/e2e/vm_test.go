package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// beforeProvisioning is the saved state that every power cut starts from.
const beforeProvisioning = "before-provisioning"

// vmDeadline is for everything that waits for the machine. A boot takes 25 s
// on two free processors and several times that on busy ones.
const vmDeadline = 5 * time.Minute

// machine is the emulated machine of case 4.
type machine struct {
	*lab.VM
	lab  *lab.Lab
	step func(what string)
}

// TestCaseMachine follows a machine with its own kernel from CustomData through
// a reboot and five power cuts. The parts are in order: each meets the machine
// as the one before left it.
func TestCaseMachine(t *testing.T) {
	l := sharedLab(t)
	m := addMachine(t, l)
	took := m.firstBoot(t)
	want := m.managed(t)
	if t.Failed() {
		return
	}
	m.reboot(t)
	m.powerCuts(t, took, want)
	m.shutDown(t)
}

func addMachine(t *testing.T, l *lab.Lab) *machine {
	t.Helper()
	v, err := l.AddVM(within(t, vmDeadline), lab.VMConfig{Name: "case-vm", UserData: customData(t, nodeConfig(t, l, ownKernel))})
	if err != nil {
		t.Fatal(err)
	}
	last := time.Now()
	m := &machine{VM: v, lab: l, step: func(what string) {
		t.Logf("%5.1f s  %s", time.Since(last).Seconds(), what)
		last = time.Now()
	}}
	t.Cleanup(func() {
		if t.Failed() && v.Running() {
			logMachine(t, v)
		}
		if err := v.Remove(within(t, time.Minute)); err != nil {
			t.Errorf("remove machine: %v", err)
		}
	})
	return m
}

// ownKernel takes out what only nspawn nodes need and adds what they can't
// show: parameters of the whole kernel, and kubelet's refusal of swap.
func ownKernel(c *aksnodeconfigv1.Configuration) {
	for _, f := range []string{"--fail-cgroupv1", "--max-open-files", "--oom-score-adj", "--fail-swap-on"} {
		delete(c.KubeletConfig.KubeletFlags, f)
	}
	swappiness, files, limit := int32(7), int32(1048576), "65536"
	c.CustomLinuxOsConfig = &aksnodeconfigv1.CustomLinuxOsConfig{
		SysctlConfig: &aksnodeconfigv1.SysctlConfig{VmSwappiness: &swappiness, FsFileMax: &files},
		UlimitConfig: &aksnodeconfigv1.UlimitConfig{NoFile: &limit},
	}
}

// hold makes the unit of provisioning stop right before it runs berth, in this
// boot only, and returns when it is there.
const hold = `set -e
unit=aks-node-controller.service
mkdir -p /run/hold /run/systemd/system/$unit.d
mkfifo /run/hold/reached /run/hold/go
cat >/run/systemd/system/$unit.d/hold.conf <<EOF
[Service]
TimeoutStartSec=infinity
ExecStartPre=/bin/sh -c 'echo >/run/hold/reached; read go </run/hold/go'
