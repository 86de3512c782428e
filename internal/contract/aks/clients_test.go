package aks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
)

// TestWholeConfigurationsOfClients: what the services that hand out this contract send is accepted as it is, and what
// becomes of it is reviewed: one with a configuration file of kubelet and its token as a fallback, one with all
// settings in flags and lowerCamel names.
func TestWholeConfigurationsOfClients(t *testing.T) {
	for name, want := range map[string][]string{
		"node-pool": {
			"bootstrapping_config.secure_tls_bootstrapping_deadline: unknown field, ignored",
			"auth_config.service_principal_secret: no base64: it is taken as it is",
		},
		"self-hosted": {
			"version: version v0 is deprecated, write v1",
			"kubeletConfig.kubeletFlags[--image-credential-provider-bin-dir]: a slash at its end does not count",
			"kubeletConfig.kubeletFlags[-v]: kubelet reads it as --v",
			"cseTimeout: it is not within 1 to 21600: it counts as the default, 900",
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", "clients", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			doc, err := Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			var notes []string
			for _, n := range doc.Notes {
				notes = append(notes, n.Path+": "+n.Detail)
			}
			if diff := cmp.Diff(want, notes); diff != "" {
				t.Error(diff)
			}
			st, err := Translate(doc, machine)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(map[string]any{"state": st, "unused": st.Unused, "unhandled": st.Unhandled, "partial": st.Partial}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("clients", name+".state.json"), string(got)+"\n")
			if strings.Contains(string(got), "0123456789abcdef") {
				t.Error("the token is in the printed state")
			}
		})
	}
}
