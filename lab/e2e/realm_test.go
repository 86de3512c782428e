package e2e

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
)

const (
	realmName     = "CORP.LAB.TEST"
	realmUser     = "joiner"
	realmPassword = "correct-horse-battery"
	realmCalls    = "/run/lab-realm"
	realmTold     = "/run/lab-realm-told"
	realmSeen     = "/run/lab-realm-seen"
	realmKeytab   = "/opt/lab/krb5.keytab"
	realmUnit     = "berth-realm-join.service"
)

// realmd has the place of realm(8): it writes how it was called and what it was told, looks
// for the password where every user of the machine may look, and leaves the machine's keys.
const realmd = `#!/bin/sh
echo "$*" >>` + realmCalls + `
umask 077
cat >` + realmTold + `
grep -lsF -f ` + realmTold + ` /proc/[0-9]*/cmdline /proc/[0-9]*/environ >>` + realmSeen + `
cp ` + realmKeytab + ` /etc/krb5.keytab
`

func realmFiles() map[string]lab.File {
	return map[string]lab.File{
		"/usr/sbin/realm": {Content: []byte(realmd), Mode: 0o755},
		realmKeytab:       {Content: keytab(realmName, "host", "cloud"), Mode: 0o600},
	}
}

// keytab is a file with one key of a principal, as MIT Kerberos writes it.
func keytab(realm string, components ...string) []byte {
	order := binary.BigEndian
	entry := order.AppendUint16(nil, uint16(len(components)))
	for _, text := range append([]string{realm}, components...) {
		entry = append(order.AppendUint16(entry, uint16(len(text))), text...)
	}
	entry = append(entry, make([]byte, 4+4+1+2+2+16)...) // type, time, version, key
	return append(order.AppendUint32([]byte{5, 2}, uint32(len(entry))), entry...)
}

func joinsRealm(c *aksnodeconfigv1.Configuration) {
	c.CustomSearchDomainConfig = &aksnodeconfigv1.CustomSearchDomainConfig{DomainName: strings.ToLower(realmName), RealmUser: realmUser, RealmPassword: realmPassword}
}

// inRealm: the machine entered the domain once, and its unit does so no second time. Nobody
// but the program learned the password.
func (c *cloudNode) inRealm(t *testing.T) {
	t.Helper()
	n := c.node
	started(t, n, realmUnit, "kubelet")
	run(t, n, "systemctl", "restart", realmUnit)
	if calls := read(t, n, realmCalls); calls != "join --user="+realmUser+"@"+realmName+" "+realmName {
		t.Errorf("realm was called with %q", calls)
	}
	if told := read(t, n, realmTold); told != realmPassword {
		t.Errorf("realm was told %q", told)
	}
	if seen := read(t, n, realmSeen); seen != "" {
		t.Errorf("the password stands in %s", seen)
	}
	said := run(t, n, "systemctl", "show", realmUnit) + run(t, n, "journalctl", "-b", "-o", "cat") + run(t, n, berthPath, "render", "-f", configPath)
	if strings.Contains(said, realmPassword) {
		t.Error("systemd, the journal or render shows the password")
	}
	r, err := n.Exec(within(t, time.Minute), "grep", "-rl", realmPassword, "/var/log")
	if err != nil || len(r.Stdout) > 0 {
		t.Errorf("the password stands in %s (%v)", r.Stdout, err)
	}
	for _, p := range strings.Fields(run(t, n, "grep", "-rl", realmPassword, "/etc", "/var/lib/berth", "/run/berth")) {
		if mode := strings.TrimSpace(run(t, n, "stat", "-c", "%a", p)); mode != "600" {
			t.Errorf("%s has the password and mode %s", p, mode)
		}
	}
}
