package proxy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/desired"
)

// files are what a machine gets, by path; secrets as they are.
func files(t *testing.T, s Settings) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, r := range Resources(s) {
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", r.ID(), err)
		}
		switch r := r.(type) {
		case *desired.File:
			out[r.Path] = r.Mode.String() + "\n" + string(r.Content.Data())
		case *desired.Block:
			text, err := json.Marshal(r.Keys)
			if err != nil {
				t.Fatal(err)
			}
			out[r.Path] = string(text)
		}
	}
	return out
}

const unit = "0644\n# Written by berth. Settings of your own go into a drop-in.\n[Service]\nEnvironmentFile=/etc/berth/proxy.env\n"

func TestResources(t *testing.T) {
	for name, c := range map[string]struct {
		settings Settings
		want     map[string]string
	}{
		"none": {Settings{Direct: []string{"x"}, Services: []string{"a.service"}, Apt: true}, map[string]string{}},
		"both": {Settings{HTTP: "http://p.example:3128", HTTPS: "p.example:3129", Direct: []string{"localhost", ".svc", "10.0.0.0/8"}, Services: []string{"a.service", "b.service"}, Apt: true}, map[string]string{
			"/etc/berth/proxy.env": "0600\n# Written by berth.\nHTTP_PROXY=\"http://p.example:3128\"\nhttp_proxy=\"http://p.example:3128\"\n" +
				"HTTPS_PROXY=\"p.example:3129\"\nhttps_proxy=\"p.example:3129\"\nNO_PROXY=\"localhost,.svc,10.0.0.0/8\"\nno_proxy=\"localhost,.svc,10.0.0.0/8\"\n",
			"/etc/systemd/system/a.service.d/10-httpproxy.conf": unit,
			"/etc/systemd/system/b.service.d/10-httpproxy.conf": unit,
			"/etc/environment": `{"HTTPS_PROXY":"p.example:3129","HTTP_PROXY":"http://p.example:3128","NO_PROXY":"localhost,.svc,10.0.0.0/8",` +
				`"http_proxy":"http://p.example:3128","https_proxy":"p.example:3129","no_proxy":"localhost,.svc,10.0.0.0/8"}`,
			"/etc/apt/apt.conf.d/95proxy": "0600\n// Written by berth.\nAcquire::http::Proxy \"http://p.example:3128\";\nAcquire::https::Proxy \"http://p.example:3129\";\n" +
				"Acquire::http::Proxy::localhost \"DIRECT\";\nAcquire::https::Proxy::localhost \"DIRECT\";\n",
		}},
		"one with a password": {Settings{HTTP: "http://u:p$w@p.example", HTTPS: "http://p.example"}, map[string]string{
			"/etc/berth/proxy.env": "0600\n# Written by berth.\nHTTP_PROXY=\"http://u:p\\$w@p.example\"\nhttp_proxy=\"http://u:p\\$w@p.example\"\nHTTPS_PROXY=\"http://p.example\"\nhttps_proxy=\"http://p.example\"\n",
			"/etc/environment":     `{"HTTPS_PROXY":"http://p.example","https_proxy":"http://p.example"}`,
		}},
		"what apt can't take": {Settings{HTTP: `u:p"w@p.example:1`, Direct: []string{"a.example", "[::1]", "x;y", "*.b"}, Apt: true}, map[string]string{
			"/etc/berth/proxy.env": "0600\n# Written by berth.\nHTTP_PROXY=\"u:p\\\"w@p.example:1\"\nhttp_proxy=\"u:p\\\"w@p.example:1\"\n" +
				"NO_PROXY=\"a.example,[::1],x;y,*.b\"\nno_proxy=\"a.example,[::1],x;y,*.b\"\n",
			"/etc/apt/apt.conf.d/95proxy": "0600\n// Written by berth.\nAcquire::http::Proxy \"http://u:p%22w@p.example:1\";\nAcquire::http::Proxy::a.example \"DIRECT\";\n",
		}},
		"only with passwords": {Settings{HTTP: "u:p@p.example:1", Direct: []string{"a"}}, map[string]string{
			"/etc/berth/proxy.env": "0600\n# Written by berth.\nHTTP_PROXY=\"u:p@p.example:1\"\nhttp_proxy=\"u:p@p.example:1\"\nNO_PROXY=\"a\"\nno_proxy=\"a\"\n",
		}},
	} {
		if diff := cmp.Diff(c.want, files(t, c.settings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What prints a state shows no password, in whichever file it stands.
func TestPasswordsDoNotPrint(t *testing.T) {
	text, err := json.Marshal(Resources(Settings{HTTP: "http://u:geheim@p.example", HTTPS: "u:geheim@p.example", Services: []string{"a.service"}, Apt: true}))
	if err != nil || strings.Contains(string(text), "geheim") || strings.Contains(string(text), Environment) {
		t.Errorf("got %s, %v", text, err)
	}
}
