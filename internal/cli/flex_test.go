package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/join"
)

// flexDocument is a configuration of AKS Flex Node with a bootstrap token.
func flexDocument(t *testing.T, kubernetes string) string {
	t.Helper()
	ca, err := os.ReadFile("../contract/node/testdata/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	p := path.Join(t.TempDir(), "config.json")
	write(t, p, fmt.Sprintf(`{"azure": {"targetCluster": {"resourceId": "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/edge/providers/Microsoft.ContainerService/managedClusters/one"},
		"bootstrapToken": {"token": "abcdef.0123456789abcdef"}}, "agent": {"logLevel": "info"},
		"components": {%s}, "networking": {"dnsServiceIP": "10.0.0.10"},
		"node": {"kubelet": {"clusterFQDN": "api.example", "caCertData": %q}}}`, kubernetes, base64.StdEncoding.EncodeToString(ca)))
	return p
}

// TestFlexNode: the published names of the commands, and what they refuse.
func TestFlexNode(t *testing.T) {
	const program = "/usr/local/bin/aks-flex-node"
	bad := path.Join(t.TempDir(), "bad.json")
	write(t, bad, `{"node": {}}`)
	noVersion := flexDocument(t, "")
	for name, c := range map[string]struct {
		args   []string
		code   int
		stderr string
	}{
		"no configuration":      {[]string{"bootstrap"}, exitcode.Failed, "/etc/aks-flex-node/config.json: no such file"},
		"another configuration": {[]string{"start", "--config", bad}, exitcode.Refused, "azure: Required value"},
		"an error in it":        {[]string{"bootstrap", "--config", noVersion}, exitcode.Refused, "components.kubernetes.version: Required value"},
		"an argument":           {[]string{"bootstrap", "now"}, exitcode.Failed, "takes no argument"},
		"leave":                 {[]string{"unbootstrap", "--config", "/nowhere"}, 0, "nothing to do"},
		"leave, as of late":     {[]string{"reset"}, 0, "nothing to do"},
		"version":               {[]string{"version"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := invoke(memory.New(), append([]string{program}, c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.stderr) || strings.Contains(stdout+stderr, "0123456789abcdef") {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
		})
	}
}

func TestFlexNodeNeedsRoot(t *testing.T) {
	for _, command := range []string{"bootstrap", "unbootstrap"} {
		var text strings.Builder
		e := &env{err: &text, uid: 1000, open: func(string) (host.Host, error) {
			t.Error("the machine was opened")
			return memory.New(), nil
		}}
		if code := e.run(t.Context(), []string{"aks-flex-node", command}); code != exitcode.Failed || !strings.Contains(text.String(), "only root") {
			t.Errorf("%s: exit code %d: %s", command, code, &text)
		}
	}
}

func TestUnlessKept(t *testing.T) {
	other := errors.New("other")
	for err, want := range map[error]error{nil: nil, told(exitcode.Kept): nil, told(exitcode.Failed): told(exitcode.Failed), other: other} {
		if got := unlessKept(join.Outcome{}, err); !errors.Is(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// What is in Azure still is nothing that the published program would leave in silence.
func TestUnlessKeptInAzure(t *testing.T) {
	if got := unlessKept(join.Outcome{InAzure: true}, told(exitcode.Kept)); !errors.Is(got, told(exitcode.Kept)) {
		t.Error(got)
	}
}
