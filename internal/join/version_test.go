package join

import (
	"context"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// TestVersionsThatFit: kubelet is no newer than the API server, and goes back a minor
// version on a drained node alone; what is not known keeps nobody out.
func TestVersionsThatFit(t *testing.T) {
	busy := []core.Pod{pod("web", ""), pod("proxy", "proxies")}
	quiet := []core.Pod{pod("proxy", "proxies")}
	for name, tc := range map[string]struct {
		want   string
		peers  Peers
		refuse string
	}{
		"the same":           {"1.36.3", Peers{Server: "v1.36.3"}, ""},
		"a later patch":      {"v1.36.9", Peers{Server: "v1.36.3"}, ""},
		"older":              {"1.35.0", Peers{Server: "v1.36.3"}, ""},
		"newer":              {"1.37.0", Peers{Server: "v1.36.3"}, "kubelet 1.37.0 is newer than the API server, which is v1.36.3"},
		"newer, of a vendor": {"1.37.0", Peers{Server: "v1.36.3-eks-1"}, "is newer"},
		"nobody says":        {"1.37.0", Peers{}, ""},
		"an upgrade":         {"1.36.3", Peers{Server: "v1.36.3", Kubelet: "v1.35.1", Pods: busy}, ""},
		"a step back":        {"1.35.1", Peers{Server: "v1.36.3", Kubelet: "v1.36.3", Unschedulable: true, Pods: quiet}, ""},
		"back with pods":     {"1.35.1", Peers{Server: "v1.36.3", Kubelet: "v1.36.3", Unschedulable: true, Pods: busy}, "not drained: default/web"},
		"back, not cordoned": {"1.35.1", Peers{Server: "v1.36.3", Kubelet: "v1.36.3"}, "the node is not drained"},
		"a patch back":       {"1.36.1", Peers{Server: "v1.36.3", Kubelet: "v1.36.3", Pods: busy}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJoiner(t)
			load := j.load
			j.load = func(ctx context.Context) (*Wanted, error) {
				w, err := load(ctx)
				w.Version = tc.want
				return w, err
			}
			r, err := j.join(func(o *Setup) { o.Peers = func(context.Context, *Wanted) Peers { return tc.peers } })
			if tc.refuse == "" {
				if err != nil || r.Milestone != "ready" {
					t.Errorf("%+v, %v", r, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.refuse) || r.Failure.Field != VersionField || r.Failure.Hint == "" {
				t.Errorf("%+v, %v", r.Failure, err)
			}
			j.isAsBefore()
		})
	}
}
