package serve

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMetadata(t *testing.T) {
	m := NewMetadata(NewInstance("other", "", "", "", "", 0))
	m.SetInstance(netip.MustParseAddr("127.0.0.1"),
		NewInstance("node-1", "id-1", "52:54:00:aa:bb:01", "10.99.0.11", "10.99.0.0", 24, Tag{"Skip", "true"}, Tag{"a", "b"}))
	m.AddIdentity(Identity{ClientID: "client-1", ObjectID: "object-1", ResourceID: "/x/1"})
	url := start(t, m)
	const v = "?api-version=2021-02-01"
	tests := map[string]struct {
		path   string
		header []string
		status int
		want   string
	}{
		"leaf":          {"/metadata/instance/compute/name" + v + "&format=text", nil, 200, "node-1"},
		"tags":          {"/metadata/instance/compute/tags" + v + "&format=text", nil, 200, "Skip:true;a:b"},
		"mac":           {"/metadata/instance/network/interface/0/macAddress" + v + "&format=text", nil, 200, "525400AABB01"},
		"object":        {"/metadata/instance/network/interface/0/ipv4/subnet" + v, nil, 200, `[{"address":"10.99.0.0","prefix":"24"}]` + "\n"},
		"leaf as json":  {"/metadata/instance/compute/name" + v, nil, 400, ""},
		"unknown":       {"/metadata/instance/compute/nope" + v, nil, 404, ""},
		"no version":    {"/metadata/instance", nil, 400, ""},
		"no header":     {"/metadata/instance" + v, []string{"Metadata", ""}, 400, ""},
		"forwarded":     {"/metadata/instance" + v, []string{"X-Forwarded-For", "1.2.3.4"}, 400, ""},
		"no resource":   {"/metadata/identity/oauth2/token" + v, nil, 400, ""},
		"who":           {"/metadata/identity/oauth2/token" + v + "&resource=r&client_id=nobody", nil, 400, ""},
		"versions":      {"/metadata/versions", nil, 200, ""},
		"whole":         {"/metadata/instance" + v, nil, 200, ""},
		"attested":      {"/metadata/attested/document" + v, nil, 200, ""},
		"other service": {"/metadata/loadbalancer" + v, nil, 404, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			status, body, err := get(t, url+test.path, append([]string{"Metadata", "true"}, test.header...)...)
			if status != test.status || err != nil || test.want != "" && string(body) != test.want {
				t.Errorf("status %d, %q, %v", status, body, err)
			}
		})
	}
	if r := m.Requests(); len(r) != len(tests) {
		t.Errorf("%d requests in the log", len(r))
	}
}

func TestMetadataFailures(t *testing.T) {
	m := NewMetadata(Instance{})
	m.Fail(1, 429)
	url := start(t, m) + "/metadata/versions"
	for _, want := range []int{429, 200} {
		if status, _, _ := get(t, url, "Metadata", "true"); status != want {
			t.Errorf("status %d, want %d", status, want)
		}
	}
	m.Fail(9, 503)
	m.Heal()
	if status, _, _ := get(t, url, "Metadata", "true"); status != 200 {
		t.Errorf("healed: status %d", status)
	}
}

func TestToken(t *testing.T) {
	m := NewMetadata(Instance{})
	m.AddIdentity(Identity{ClientID: "client-1", ObjectID: "object-1", ResourceID: "/x/1"})
	m.AddIdentity(Identity{ClientID: "client-2", ObjectID: "object-2", ResourceID: "/x/2"})
	url := start(t, m) + "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://r/"
	for query, want := range map[string]string{"": "client-1", "&client_id=client-2": "client-2", "&mi_res_id=/x/2": "client-2"} {
		_, body, err := get(t, url+query, "Metadata", "true")
		if err != nil {
			t.Fatal(err)
		}
		var answer map[string]string
		if err := json.Unmarshal(body, &answer); err != nil {
			t.Fatal(err)
		}
		if answer["client_id"] != want || answer["resource"] != "https://r/" {
			t.Errorf("%s: %v", query, answer)
		}
		if diff := cmp.Diff(want, claim(t, m.TokenKey(), answer["access_token"], "appid")); diff != "" {
			t.Error(diff)
		}
	}
}

func claim(t *testing.T, key *rsa.PublicKey, token, name string) any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("not a token: %s", token)
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature); err != nil {
		t.Error(err)
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(body, &claims); err != nil {
		t.Fatal(err)
	}
	return claims[name]
}

func TestWireServer(t *testing.T) {
	url := start(t, NewWireServer())
	tests := map[string]struct {
		path, version string
		status        int
		contains      string
	}{
		"versions":     {"/?comp=versions", "", 200, "2012-11-30"},
		"goal state":   {"/machine?comp=goalstate", wireVersion, 200, "<Incarnation>1</Incarnation>"},
		"trailing":     {"/machine/?comp=goalstate", wireVersion, 200, "<GoalState>"},
		"no version":   {"/machine?comp=goalstate", "", 400, "x-ms-version"},
		"plugin":       {"/versions", "", 200, "2015-09-01"},
		"health":       {"/health", "", 200, ""},
		"root certs":   {"/acms/isOptedInForRootCerts", "", 200, "IsOptedInForRootCerts=false"},
		"unknown comp": {"/machine?comp=certificates", wireVersion, 404, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			status, body, err := get(t, url+test.path, "x-ms-version", test.version)
			if status != test.status || err != nil || !strings.Contains(string(body), test.contains) {
				t.Errorf("status %d, %q, %v", status, body, err)
			}
		})
	}
}

// TestWireServerTells: who is opted in learns the names of the certificates, and each of
// them by its name.
func TestWireServerTells(t *testing.T) {
	s := NewWireServer()
	url := start(t, s)
	asks := func(path string, status int, contains string) {
		t.Helper()
		got, body, err := get(t, url+path, "x-ms-version", "")
		if got != status || err != nil || !strings.Contains(string(body), contains) {
			t.Errorf("%s: status %d, %q, %v", path, got, body, err)
		}
	}
	const of = "/machine?comp=acmspackage&type="
	asks(of+"operationrequestsroot&ext=json", 404, "")
	s.Tell([]string{"root a", "root b"}, []string{"between"})
	asks("/acms/isOptedInForRootCerts", 200, "IsOptedInForRootCerts=true")
	asks(of+"operationrequestsroot&ext=json", 200, `{"OperationsInfo":[{"ResouceFileName":"operationrequestsroot-0.crt"},{"ResouceFileName":"operationrequestsroot-1.crt"}]}`)
	asks(of+"operationrequestsroot-1&ext=crt", 200, "root b")
	asks(of+"operationrequestsintermediate-0&ext=crt", 200, "between")
	asks(of+"operationrequestsintermediate-1&ext=crt", 404, "")
	asks(of+"operationrequestsroot-1&ext=json", 404, "")
	s.Tell([]string{"root c"}, nil)
	asks(of+"operationrequestsroot-0&ext=crt", 200, "root c")
	asks(of+"operationrequestsroot-1&ext=crt", 404, "")
}
