package provision

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// TestNodeOf: the wait looks at the files that kubelet is told to use.
func TestNodeOf(t *testing.T) {
	h := memory.New()
	h.Value("/proc/sys/kernel/hostname", "Machine\n")
	usual := &kubelet.Cluster{Server: "https://api:443", CA: []byte("ca")}
	token := &kubelet.Cluster{Server: "https://api:443", CA: []byte("ca"), Credential: kubelet.Credential{Token: "abcdef.0123456789abcdef"}}
	given := &kubelet.Cluster{Server: "https://api:443", CA: []byte("ca"), Credential: kubelet.Credential{Cert: []byte("c"), Key: "k"}}
	other := map[string]string{"--kubeconfig": "/etc/k", "--bootstrap-kubeconfig": "/etc/b", "--hostname-override": "Other"}
	for name, c := range map[string]struct {
		cluster *kubelet.Cluster
		flags   map[string]string
		want    Node
	}{
		"as berth has it": {token, nil, Node{"machine", kubelet.Kubeconfig, kubelet.Bootstrap, ""}},
		"another's files": {token, other, Node{"other", "/etc/k", "/etc/b", ""}},
		"a certificate":   {given, map[string]string{"--kubeconfig": "/etc/k", "--hostname-override": "Other"}, Node{"other", "/etc/k", "", ""}},
		"of the image":    {usual, nil, Node{"machine", kubelet.Kubeconfig, "", ""}},
		"no node":         {nil, nil, Node{"machine", kubelet.Kubeconfig, "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			rs, err := kubelet.Resources(kubelet.Settings{Version: "1.34.0", Cluster: c.cluster, Flags: c.flags, Hostname: "machine"})
			if err != nil {
				t.Fatal(err)
			}
			st := &desired.State{}
			st.Add(rs...)
			if d := cmp.Diff(c.want, NodeOf(h, st)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestHealthOfNode: the wait asks where kubelet's configuration has it listen.
func TestHealthOfNode(t *testing.T) {
	for text, want := range map[string]string{
		`{"healthzPort": 10300, "healthzBindAddress": "10.0.0.7"}`: "http://10.0.0.7:10300/healthz",
		`{}`:                 "http://127.0.0.1:10248/healthz",
		`{"healthzPort": 0}`: "",
		`torn`:               "",
	} {
		st := &desired.State{}
		st.Add(&desired.File{Path: kubelet.ConfigFile, Content: desired.Text(text)})
		if got := NodeOf(memory.New(), st).Healthz; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestKubeconfigs: where kubelet's flags on the machine say comes first; a flag that is no
// path, or none, changes nothing.
func TestKubeconfigs(t *testing.T) {
	known := []string{kubelet.Kubeconfig, kubelet.AgentKubeconfig}
	for name, c := range map[string]struct {
		files map[string]string
		first string
	}{
		"nothing":         {nil, ""},
		"of no path":      {map[string]string{kubelet.FlagsFile: "KUBELET_FLAGS=--kubeconfig=$HOME/k --v=2\n"}, ""},
		"berth's":         {map[string]string{kubelet.FlagsFile: "KUBELET_FLAGS=--kubeconfig=" + kubelet.Kubeconfig + "\n"}, ""},
		"flags":           {map[string]string{kubelet.FlagsFile: "KUBELET_FLAGS=--v=2 --kubeconfig=/etc/k --bootstrap-kubeconfig=/b\n"}, "/etc/k"},
		"drop-in":         {map[string]string{kubelet.DropInDir + "/50-x.conf": "[Service]\nEnvironment=\"X=--kubeconfig=/etc/k\"\n"}, "/etc/k"},
		"the other path":  {map[string]string{KubeletUnitFile: "[Service]\nExecStart=/opt/bin/kubelet --kubeconfig=" + kubelet.AgentKubeconfig + " --v=2\n"}, kubelet.AgentKubeconfig},
		"after a space":   {map[string]string{KubeletUnitFile: "[Service]\nExecStart=/opt/bin/kubelet --kubeconfig  /etc/k --v=2\n"}, "/etc/k"},
		"without a value": {map[string]string{kubelet.FlagsFile: "KUBELET_FLAGS=--kubeconfig --v=2\n"}, ""},
		"a comment":       {map[string]string{kubelet.FlagsFile: "# --kubeconfig=/etc/k\n"}, ""},
		"no drop-in":      {map[string]string{kubelet.DropInDir + "/50-x.conf.bak": "--kubeconfig=/etc/k"}, ""},
		"flags go last":   {map[string]string{kubelet.DropInDir + "/50-x.conf": "--kubeconfig=/etc/j", kubelet.FlagsFile: "--kubeconfig=/etc/k"}, "/etc/k"},
	} {
		h := memory.New()
		for p, text := range c.files {
			h.Put(p, text, 0o644)
		}
		want := known
		if c.first != "" {
			want = append([]string{c.first}, slices.DeleteFunc(slices.Clone(known), func(p string) bool { return p == c.first })...)
		}
		if diff := cmp.Diff(want, Kubeconfigs(h)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
