package secretname

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host/memory"
)

const file = "/var/lib/gardener-node-agent/config-v1.2.3.yaml"

const configuration = `apiVersion: nodeagent.config.gardener.cloud/v1alpha1
kind: NodeAgentConfiguration
apiServer: {server: "https://api", caFile: /ca}
bootstrap: {kubeletDataVolumeSize: 21474836480}
controllers:
  operatingSystemConfig: {secretName: pool-old, kubernetesVersion: 1.30.0, syncPeriod: 1m, note: "1.30"}
`

const rewritten = `apiServer:
  caFile: /ca
  server: https://api
apiVersion: nodeagent.config.gardener.cloud/v1alpha1
bootstrap:
  kubeletDataVolumeSize: 21474836480
controllers:
  operatingSystemConfig:
    kubernetesVersion: 1.30.0
    note: "1.30"
    secretName: pool-new
    syncPeriod: 1m
kind: NodeAgentConfiguration
`

type events struct {
	mu   sync.Mutex
	told []string
}

func (e *events) Warning(_, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, message)
}

func nodeWith(labels map[string]string) *core.Node {
	return &core.Node{ObjectMeta: meta.ObjectMeta{Name: "n1", Labels: labels}}
}

func TestCheck(t *testing.T) {
	label := func(v string) *core.Node { return nodeWith(map[string]string{Label: v}) }
	for name, tc := range map[string]struct {
		nodes []*core.Node
		text  string
		want  string // of the file
		told  []string
		err   error
	}{
		"the same":     {nodes: []*core.Node{nil, label("pool-old"), label("pool-old")}, text: configuration, want: configuration},
		"another":      {nodes: []*core.Node{label("pool-old"), label("pool-new")}, text: configuration, want: rewritten, err: ErrChanged},
		"at the start": {nodes: []*core.Node{label("pool-new")}, text: configuration, want: rewritten, err: ErrChanged},
		"missing": {nodes: []*core.Node{nodeWith(nil), nodeWith(nil)}, text: configuration, want: configuration,
			told: []string{"label " + Label + " of the Node is missing; the agent stays with pool-old"}},
		"empty, twice": {nodes: []*core.Node{label(""), label("pool-old"), label("")}, text: configuration, want: configuration,
			told: []string{"label " + Label + " of the Node is empty; the agent stays with pool-old", "label " + Label + " of the Node is empty; the agent stays with pool-old"}},
		"no name":    {nodes: []*core.Node{label("Pool_New")}, text: configuration, want: configuration, told: []string{"label " + Label + " of the Node is no name of a Secret"}},
		"then right": {nodes: []*core.Node{label(""), label("pool-new")}, text: configuration, want: rewritten, told: []string{"label"}, err: ErrChanged},
		"no mapping": {nodes: []*core.Node{label("pool-new"), label("pool-old")}, text: "controllers: []\n", want: "controllers: []\n",
			told: []string{file + ": controllers: expected a mapping"}},
		"otherwise refused": {nodes: []*core.Node{label("pool-new"), label("pool-old")}, text: strings.Replace(configuration, "https", "http", 1),
			want: strings.Replace(configuration, "https", "http", 1), told: []string{file + ": apiServer.server"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, e := memory.New(), &events{}
				h.Put(file, tc.text, 0o644)
				node := &apiserver.Latest[core.Node]{}
				c := &Check{Host: h, Events: e, Node: node, Name: "pool-old", File: file}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				ended := make(chan error)
				go func() { ended <- c.Run(ctx) }()
				for _, n := range tc.nodes {
					node.Set(n)
					synctest.Wait()
				}
				if err := <-ended; !errors.Is(err, tc.err) {
					t.Error(err)
				}
				text, err := h.ReadFile(file)
				if d := cmp.Diff(tc.want, string(text)); err != nil || d != "" {
					t.Error(err, d)
				}
				if i, err := h.Lstat(file); tc.err != nil && (err != nil || i.Mode != 0o600) {
					t.Errorf("%+v, %v", i, err)
				}
				if len(e.told) != len(tc.told) {
					t.Fatalf("told %q", e.told)
				}
				for i := range tc.told {
					if !strings.HasPrefix(e.told[i], tc.told[i]) {
						t.Errorf("told %q", e.told[i])
					}
				}
			})
		})
	}
}

func TestRewriteOfAFileThatIsMissing(t *testing.T) {
	if err := Rewrite(memory.New(), file, "pool-new"); err == nil {
		t.Error("no error")
	}
}

func FuzzWithName(f *testing.F) {
	f.Add([]byte(configuration))
	f.Add([]byte("controllers: {operatingSystemConfig: {}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		once, err := withName(text, "pool-new")
		if err != nil {
			return
		}
		twice, err := withName(once, "pool-new")
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%q, then %q, %v", once, twice, err)
		}
	})
}
