package remote

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseHosts(t *testing.T) {
	both := func(h Host) Host { h.Pulls, h.Resolves = true, true; return h }
	for name, c := range map[string]struct {
		text string
		want []Host
	}{
		"nothing":      {"", []Host{both(Host{})}},
		"server alone": {`server = "registry.example"`, []Host{both(Host{Base: "https://registry.example/v2"})}},
		"in order": {"server = \"https://s\"\n[host.\"https://z\"]\n[host.\"http://a:5000\"]\n  capabilities = [\"pull\"]\n[host.\"https://z\".header]\n  x = \"1\"\n",
			[]Host{both(Host{Base: "https://z/v2", Header: http.Header{"X": {"1"}}}), {Base: "http://a:5000/v2", Pulls: true}, both(Host{Base: "https://s/v2"})}},
		"paths": {"[host.\"https://a/b/\"]\n[host.\"https://a/v2/\"]\n[host.\"https://a/x\"]\noverride_path = true\n[host.\"https://a\"]\noverride_path = true\n",
			[]Host{both(Host{Base: "https://a/b/v2"}), both(Host{Base: "https://a/v2"}), both(Host{Base: "https://a/x"}), both(Host{Base: "https://a"}), both(Host{})}},
		"certificates": {"ca = \"ca.pem\"\n[host.\"https://a\"]\nca = [\"/x/a.pem\", \"b.pem\"]\nclient = [[\"c.pem\", \"/k.pem\"]]\nskip_verify = true\n",
			[]Host{both(Host{Base: "https://a/v2", CAs: []string{"/x/a.pem", "/d/b.pem"}, Clients: [][2]string{{"/d/c.pem", "/k.pem"}}, SkipVerify: true}),
				both(Host{CAs: []string{"/d/ca.pem"}})}},
		"clients":      {`client = ["a.pem", "b.pem"]`, []Host{both(Host{Clients: [][2]string{{"/d/a.pem"}, {"/d/b.pem"}}})}},
		"one client":   {`client = "a.pem"`, []Host{both(Host{Clients: [][2]string{{"/d/a.pem"}}})}},
		"capabilities": {`capabilities = ["PUSH", "resolve", "referrers"]`, []Host{{Resolves: true}}},
		"headers":      {"[header]\na = [\"1\", \"2\"]\n", []Host{both(Host{Header: http.Header{"A": {"1", "2"}}})}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseHosts([]byte(c.text), "/d")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseHostsRefuses(t *testing.T) {
	for _, text := range []string{
		"[", "ca = 7", "ca = [7]", "client = 7", `client = [["a", "b", "c"]]`, `client = [[7, 8]]`, `capabilities = ["fly"]`, "[header]\na = 7",
		`server = "https://"`, `server = "https://u:p@a"`, `server = "httpx://a"`, `server = "https://%zz"`, "[host.\"https://\"]",
	} {
		if got, err := ParseHosts([]byte(text), "/d"); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func FuzzParseHosts(f *testing.F) {
	f.Add([]byte("server = \"a\"\n[host.\"https://b\"]\ncapabilities = [\"pull\"]\n"))
	f.Add([]byte("host = {a = {}}\n[[host]]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		hosts, err := ParseHosts(b, "/d")
		if err == nil && len(hosts) == 0 {
			t.Error("nobody to ask")
		}
	})
}
