package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"testing"
)

// Scripts of the agent's package, as a package for Debian has them: its user and its
// unit come and go with it.
const (
	himdsUnit = "[Unit]\nDescription=the lab's agent of Azure Arc\n[Service]\nExecStart=/usr/bin/python3 /opt/himds.py\n[Install]\nWantedBy=multi-user.target\n"
	postinst  = "#!/bin/sh\nset -e\nid himds >/dev/null 2>&1 || useradd --system himds\nmkdir -p /var/opt/azcmagent\nsystemctl daemon-reload\nsystemctl enable --now himdsd\n"
	prerm     = "#!/bin/sh\nset -e\nsystemctl disable --now himdsd\n"
	postrm    = "#!/bin/sh\nset -e\nif [ \"$1\" = purge ]; then\n  rm -rf /var/opt/azcmagent\n  userdel himds\nfi\nsystemctl daemon-reload\n"
)

// agentPackage is a Debian package with the lab's agent of Azure Arc.
func agentPackage(t *testing.T) []byte {
	t.Helper()
	service, err := os.ReadFile("testdata/himds.py")
	check(t, err)
	program, err := os.ReadFile("testdata/azcmagent.py")
	check(t, err)
	control := "Package: azcmagent\nVersion: 1.0\nArchitecture: all\nMaintainer: the lab <lab@example.com>\nDescription: the lab's agent of Azure Arc\n"
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, m := range []struct {
		name    string
		content []byte
	}{
		{"debian-binary", []byte("2.0\n")},
		{"control.tar.gz", packed(t, 0o755, map[string]string{"control": control, "postinst": postinst, "prerm": prerm, "postrm": postrm})},
		{"data.tar.gz", packed(t, 0o755, map[string]string{"usr/bin/azcmagent": string(program), "opt/himds.py": string(service), "usr/lib/systemd/system/himdsd.service": himdsUnit})},
	} {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", m.name, 0, 0, 0, 0o100644, len(m.content))
		out.Write(m.content)
		if len(m.content)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return out.Bytes()
}

// packed is a compressed archive of files, and of the directories above them.
func packed(t *testing.T, mode int64, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	a := tar.NewWriter(z)
	known := map[string]bool{".": true}
	var parents func(p string)
	parents = func(p string) {
		if known[p] {
			return
		}
		parents(path.Dir(p))
		known[p] = true
		check(t, a.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./" + p + "/", Mode: 0o755}))
	}
	check(t, a.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755}))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		parents(path.Dir(name))
		check(t, a.WriteHeader(&tar.Header{Name: "./" + name, Mode: mode, Size: int64(len(files[name]))}))
		_, err := a.Write([]byte(files[name]))
		check(t, err)
	}
	check(t, a.Close())
	check(t, z.Close())
	return out.Bytes()
}
