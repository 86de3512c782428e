package e2e

import (
	"encoding/base64"
	"encoding/pem"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// darkAddress answers nothing: the lab drops what is sent there.
const darkAddress = "203.0.113.7"

// darken makes the lab drop packets to darkAddress.
func darken(t *testing.T, l *lab.Lab) {
	t.Helper()
	if out, err := l.Command(within(t, 10*time.Second), "ip", "route", "replace", "blackhole", darkAddress+"/32").CombinedOutput(); err != nil {
		t.Fatalf("black hole: %v\n%s", err, out)
	}
}

// toDark is a configuration whose API server never answers, with seconds to
// find out.
func toDark(seconds int32) func(*aksnodeconfigv1.Configuration) {
	return func(c *aksnodeconfigv1.Configuration) {
		c.ApiServerConfig.ApiServerName, c.CseTimeout = darkAddress, &seconds
	}
}

// badServers are API servers that can't be reached or trusted.
func badServers(t *testing.T, m *badMachine) {
	darken(t, m.lab)
	seconds := int32(10)
	patient := int32(45) // two fifths are the command's: more than a lost question of the resolver takes
	m.each(t, []badCase{
		{name: "black hole", code: 51, field: "api_server_config.api_server_name", says: []string{darkAddress + ":443", "connect"}, hint: "firewall",
			config: m.document(t, toDark(seconds)), within: 11 * time.Second},
		{name: "no such name", code: 52, field: "api_server_config.api_server_name", says: []string{"no.lab.test", "resolve", m.lab.Gateway().String()}, hint: "/etc/resolv.conf",
			config: m.document(t, func(c *aksnodeconfigv1.Configuration) {
				c.ApiServerConfig.ApiServerName, c.CseTimeout = "no.lab.test", &seconds
			}), within: 11 * time.Second},
		{name: "refused", code: 51, field: "api_server_config.api_server_name", says: []string{"connection refused"}, hint: "firewall",
			config: m.document(t, func(c *aksnodeconfigv1.Configuration) {
				c.ApiServerConfig.ApiServerName, c.CseTimeout = m.node.IP.String(), &seconds
			}), within: 11 * time.Second},
		{name: "no way out", code: 50, field: "outbound_command", says: []string{"no way out", "getent ahosts no.lab.test", "exit code 2"}, hint: "outbound_command",
			config: m.document(t, func(c *aksnodeconfigv1.Configuration) {
				c.OutboundCommand, c.CseTimeout = "getent ahosts no.lab.test", &patient
			}), within: 46 * time.Second},
		{name: "wrong CA", code: 253, field: "api_server_config.api_server_name", says: []string{"verify its certificate", "unknown authority"}, hint: "CA",
			config: m.document(t, strangeCA(t))},
	})
}

// strangeCA trusts an authority that is not the cluster's.
func strangeCA(t *testing.T) func(*aksnodeconfigv1.Configuration) {
	t.Helper()
	cert, err := serve.Stranger("stranger.lab.test")
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[1]})
	return func(c *aksnodeconfigv1.Configuration) { c.KubernetesCaCert = base64.StdEncoding.EncodeToString(ca) }
}
