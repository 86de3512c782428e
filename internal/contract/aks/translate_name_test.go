package aks

import (
	"errors"
	"strings"
	"testing"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
)

// The API server takes no Node that would be called so, or kubelet's label of it does not: the
// machine's name is refused before anything is touched, by the flag that gives another one.
func TestHostNameThatNoNodeHas(t *testing.T) {
	const at = "kubelet_config.kubelet_flags[--hostname-override]"
	for name, ok := range map[string]bool{
		"Edge-7": true, "edge-7.example": true, strings.Repeat("e", 63): true,
		"": false, "edge_7": false, "edge-7.": false, strings.Repeat("e", 64): false,
	} {
		for _, override := range []string{"", "Other"} {
			cfg, f := sample(t, "minimal.json"), machine
			f.Hostname = name
			if override != "" {
				cfg.KubeletConfig = &aksnodeconfigv1.KubeletConfig{KubeletFlags: map[string]string{"--hostname-override": override}}
			}
			_, err := Translate(&Document{Config: cfg}, f)
			refused, is := errors.AsType[*DocumentError](err)
			switch {
			case ok || override != "":
				if err != nil {
					t.Errorf("%q, %q: %v", name, override, err)
				}
			case !is || refused.Code != decode.CodeRefused || refused.Errors[0].Field != at || !strings.Contains(err.Error(), "hostnamectl"):
				t.Errorf("%q: %v", name, err)
			}
		}
		cfg, f := sample(t, "minimal.json"), machine
		cfg.PreProvisionOnly, f.Hostname = true, name
		if _, err := Translate(&Document{Config: cfg}, f); err != nil {
			t.Errorf("%q, of a machine that makes an image: %v", name, err)
		}
	}
}
