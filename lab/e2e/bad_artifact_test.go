package e2e

import (
	"compress/gzip"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// badArtifacts are downloads that must not be used. The image lacks a plugin, so
// that one is needed.
func badArtifacts(t *testing.T, m *badMachine) {
	const field, plugin = "network_config.cni_plugins_url", "/opt/cni/bin/portmap"
	a := serve.NewArtifacts()
	digest, err := addPlugins(t, a)
	if err != nil {
		t.Fatal(err)
	}
	base := fmt.Sprintf("http://%s:%d", m.lab.Gateway(), listen(t, m.lab, plain(a)))
	run(t, m.node, "mv", plugin, "/run/portmap")
	defer run(t, m.node, "mv", "/run/portmap", plugin)
	from := func(url string) []byte {
		return m.document(t, func(c *aksnodeconfigv1.Configuration) { c.NetworkConfig.CniPluginsUrl = url })
	}
	seconds := int32(6)
	slow := addOther(t, a, "/slow.tgz")
	a.SetFault("/slow.tgz", serve.Slow(1))
	m.each(t, []badCase{
		{name: "too slow", code: 41, field: field, says: []string{"no data for", "the time for this download is over", "cni-plugins"}, hint: "raise cse_timeout", within: 8 * time.Second,
			config: m.document(t, func(c *aksnodeconfigv1.Configuration) {
				c.NetworkConfig.CniPluginsUrl, c.CseTimeout = base+"/slow.tgz#sha256="+slow, &seconds
			})},
		{name: "wrong digest", code: 251, field: field, says: []string{strings.Repeat("0", 64), digest}, hint: "Compare the digest",
			config: from(base + "/cni.tgz#sha256=" + strings.Repeat("0", 64))},
		{name: "not found", code: 41, field: field, says: []string{"404", base + "/none.tgz"}, hint: "no such file",
			config: from(base + "/none.tgz#sha256=" + digest)},
		{name: "no digest", code: 251, field: field, says: []string{"plain http needs a digest"}, config: from(base + "/cni.tgz")},
		{name: "another archive", code: 41, field: field, says: []string{"bridge", "it holds readme"}, hint: "another archive", config: from(base + "/other.tgz#sha256=" + addOther(t, a, "/other.tgz"))},
		{name: "no URL", code: 206, field: field, says: []string{plugin}, config: m.document(t)},
	})
}

// addPlugins serves an archive of the plugins that are in the image.
func addPlugins(t *testing.T, a *serve.Artifacts) (string, error) {
	t.Helper()
	var entries []serve.Entry
	for _, name := range []string{"bridge", "host-local", "loopback", "portmap"} {
		entries = append(entries, serve.Entry{Name: name, Data: []byte("#!/bin/sh\n"), Mode: 0o755})
	}
	return addArchive(t, a, "/cni.tgz", entries...)
}

func addOther(t *testing.T, a *serve.Artifacts, path string) string {
	t.Helper()
	digest, err := addArchive(t, a, path, serve.Entry{Name: "readme", Data: []byte("hello\n"), Mode: 0o644})
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func addArchive(t *testing.T, a *serve.Artifacts, path string, entries ...serve.Entry) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "archive.tgz")
	if _, err := serve.WriteTarGz(file, gzip.BestSpeed, entries...); err != nil {
		return "", err
	}
	b, err := a.AddFile(path, file)
	return b.SHA256, err
}
