package join

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/provision"
)

// TestLoadReadsTheDocumentOnce: a pipe has nothing more for a run that asks the cluster
// again.
func TestLoadReadsTheDocumentOnce(t *testing.T) {
	for name, flex := range map[string]bool{"join": false, "bootstrap": true} {
		file := filepath.Join(t.TempDir(), "document")
		if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		l := &Loader{Host: memory.New(), File: file, Flex: flex}
		_, first := l.Load(t.Context())
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		_, second := l.Load(t.Context())
		refused := new(exitcode.RefusedError)
		if !errors.As(first, &refused) || !errors.As(second, &refused) || first.Error() != second.Error() {
			t.Errorf("%s: %v, then %v", name, first, second)
		}
	}
}

// TestFlexDocument: what the configuration says comes into force as of a NodeConfig, and
// what has no place in one is noted.
func TestFlexDocument(t *testing.T) {
	ca, err := os.ReadFile("../contract/node/testdata/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.json")
	text := fmt.Sprintf(`{"azure": {"targetCluster": {"resourceId": "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/edge/providers/Microsoft.ContainerService/managedClusters/one"},
		"bootstrapToken": {"token": "abcdef.0123456789abcdef"}}, "agent": {"logLevel": "info"},
		"components": {"kubernetes": "1.36.3"}, "networking": {"dnsServiceIP": "10.0.0.10"},
		"node": {"kubelet": {"clusterFQDN": "api.example", "caCertData": %q}}}`, base64.StdEncoding.EncodeToString(ca))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := loaderOf(memory.New(), file, true).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if w.Server != "https://api.example:443" || len(w.Notes) == 0 || w.Notes[0].Path != "agent.logLevel" || w.Open {
		t.Errorf("%+v", w)
	}
}

// The secret with which bootstrap registered the machine takes it back.
func TestFlexRegistrar(t *testing.T) {
	h := memory.New()
	if _, err := FlexRegistrar(h, "/etc/aks-flex-node/config.json"); err == nil {
		t.Error("there is no configuration")
	}
	for text, want := range map[string]string{
		`"arc": {}, "servicePrincipal": {"clientId": "c", "clientSecret": "hush"}`:                 "hush",
		`"arc": {"enabled": false}, "servicePrincipal": {"clientId": "c", "clientSecret": "hush"}`: "",
	} {
		h.Put("/etc/aks-flex-node/config.json", `{"azure": {"tenantId": "t", `+text+`}}`, 0o600)
		who, err := FlexRegistrar(h, "/etc/aks-flex-node/config.json")
		if err != nil || (who != nil) != (want != "") || who != nil && (who.ClientSecret.Reveal() != want || who.TenantID != "t") {
			t.Errorf("%s: %+v, %v", text, who, err)
		}
	}
}

// loaderOf loads for a machine that nobody is asked of.
func loaderOf(h host.Host, file string, flex bool) *Loader {
	return &Loader{
		Host: h, File: file, Flex: flex, Say: func(string) {}, Take: func([]byte, contract.Contract, component.Facts) {},
		Inquiry: &provision.Inquiry{Host: h, Agent: func(host.FS) (bool, error) { return false, nil },
			Source: provision.FactsSource{Offline: true, Version: func(context.Context, host.Host, string) (string, error) { return "", nil }}},
	}
}

// TestLoadRefuses: joining takes a NodeConfig alone, and one that the agent is to keep from a
// file that stays. Nobody is asked anything for another.
func TestLoadRefuses(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	keep, err := os.ReadFile("../contract/node/testdata/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	keep = append(keep, "agent: {keep: true}\n"...)
	for text, want := range map[string]string{
		"apiVersion: extensions.gardener.cloud/v1alpha1\nkind: OperatingSystemConfig\nspec: {}\n": "and joining takes a NodeConfig",
		string(keep): "agent.keep: the document comes by a pipe",
	} {
		l := loaderOf(memory.New(), pipe, false)
		l.text = []byte(text)
		_, err := l.Load(t.Context())
		if refused := new(exitcode.RefusedError); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
