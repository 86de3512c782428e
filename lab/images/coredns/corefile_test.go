package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/caddy"
)

// parse has CoreDNS and its plugins read a configuration, and nothing more: no address is
// listened at.
func parse(text string) error {
	input := caddy.CaddyfileInput{Filepath: "Corefile", Contents: []byte(text), ServerTypeName: "dns"}
	return caddy.ValidateAndExecuteDirectives(input, nil, true)
}

// TestCorefiles: CoreDNS reads what berth writes for a node, with names of its own and
// without, and would not read the same text with a word that a plugin does not know.
func TestCorefiles(t *testing.T) {
	const dir = "../../../internal/component/localdns/testdata"
	for file, hosts := range map[string]bool{"corefile": true, "corefile-without-hosts": false} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		if err := parse(text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if strings.Contains(text, "\n    hosts ") != hosts {
			t.Errorf("%s: %s", file, text)
		}
		for _, word := range []string{"forward .", "ready", "policy", "serve_stale", "health_check"} {
			if err := parse(strings.Replace(text, word+" ", word+" unknown-word unknown-word ", 1)); err == nil {
				t.Errorf("%s: anything goes after %s", file, word)
			}
		}
	}
}
