package azure

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// cloud is an Azure that remembers machines and assignments, and a machine whose agent
// registers there.
type cloud struct {
	t       *testing.T
	host    *memory.Host
	source  *Source
	r       *component.ArcRegistration
	objects map[string]bool
	log     []string
	args    []string
	inputs  map[string]any
	local   bool // the agent is connected
	// fails is the exit code of azcmagent connect, forbid a method that Azure refuses, cut
	// ends connect after Azure has made the machine and before the agent knows.
	fails  int
	forbid string
	cut    bool
	// name is what the agent is connected as, if not as in the document; rival registers
	// the name just before the agent does.
	name  string
	rival bool
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{t: t, host: machine(), objects: map[string]bool{}}
	tls := httptest.NewTLSServer(c)
	t.Cleanup(tls.Close)
	claims := good(c.host.Now(), time.Hour)
	claims["aud"] = tls.URL
	token := jwt(claims)
	// The agent's service answers as the real one: first a file, then the token.
	arc := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.Header().Set("Www-Authenticate", "Basic realm="+keyFile)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		give(token)(w, r)
	}))
	t.Cleanup(arc.Close)
	c.source = &Source{host: c.host, endpoints: endpoints{arc: arc.URL + tokenPath, outward: outward, pause: time.Millisecond}}
	c.host.Program("/usr/bin/az", func(host.Command) host.Output {
		return host.Output{Stdout: fmt.Appendf(nil, `{"accessToken":%q}`, token)}
	})
	c.host.Put("/usr/bin/azcmagent", "", 0o755)
	c.host.Program("/usr/bin/azcmagent", c.agent)
	via := &desired.Egress{CAs: []string{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))}}
	c.r = &component.ArcRegistration{SubscriptionID: tenant, ResourceGroup: "Edge", Name: "one", Location: "westeurope", Tags: map[string]string{"b": "2", "a": "1"},
		By: &desired.AzureIdentity{Kind: desired.AzureCLI, ServerID: client}, Manager: tls.URL, Via: via, ClusterID: aks}
	return c
}

// agent is azcmagent.
func (c *cloud) agent(cmd host.Command) host.Output {
	c.args = append(c.args, strings.Join(cmd.Args, " "))
	switch cmd.Args[0] {
	case "show":
		if c.local {
			return host.Output{Stdout: []byte(`{"status":"Connected","resourceName":"` + cmp.Or(c.name, "one") + `","resourceGroup":"edge","subscriptionId":"` + tenant + `"}`)}
		}
		return host.Output{Stdout: []byte(`{"status":"Disconnected","resourceName":""}`)}
	case "connect":
		text, err := c.host.ReadFile(cmd.Args[2])
		if err != nil || json.Unmarshal(text, &c.inputs) != nil {
			c.t.Errorf("the agent's inputs: %v", err)
		}
		if info, err := c.host.Lstat(cmd.Args[2]); err != nil || info.Mode.Perm() != 0o600 {
			c.t.Errorf("%v, %v", info.Mode, err)
		}
		if made, err := c.source.made(); err != nil || !SameResource(made.Machine, edge) {
			c.t.Errorf("the agent was called before it was noted: %+v, %v", made, err)
		}
		if c.rival {
			c.objects[strings.ToLower(edge)] = true
		}
		if c.fails != 0 {
			return host.Output{ExitCode: c.fails, Stdout: []byte("level=fatal msg=\"AZCM0042: no\"\n")}
		}
		c.objects[strings.ToLower(edge)] = true
		c.local = !c.cut
		if c.cut {
			return host.Output{ExitCode: 1}
		}
	case "disconnect":
		if !c.local {
			return host.Output{ExitCode: 1}
		}
		c.local = false
	}
	return host.Output{}
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	id := strings.ToLower(r.URL.Path)
	c.log = append(c.log, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "Microsoft."):])
	switch {
	case r.Method == c.forbid:
		refuse(403, "AuthorizationFailed")(w, r)
	case r.Method == http.MethodPut:
		c.objects[id] = true
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodDelete:
		delete(c.objects, id)
	case r.Method == http.MethodPost:
		say(200, userCredentialOf("https://one.example:443", somePEM))(w, r)
	case !c.objects[id]:
		refuse(404, "ResourceNotFound")(w, r)
	default:
		say(200, `{"identity":{"principalId":"`+principal+`"}}`)(w, r)
	}
}

func (c *cloud) register() error {
	c.log, c.args = nil, nil
	return c.source.Register(context.Background(), c.r, false, func(string) {})
}

func (c *cloud) unregister() []error {
	c.log, c.args = nil, nil
	return c.source.Unregister(context.Background(), func(string) {})
}

func (c *cloud) has(p string) bool {
	_, err := c.host.Lstat(p)
	return err == nil
}

func TestRegister(t *testing.T) {
	c := newCloud(t)
	if err := c.register(); err != nil {
		t.Fatal(err, hintOf(err))
	}
	if got := strings.Join(c.args, "; "); got != "show -j; connect --config "+arcInputs {
		t.Errorf("azcmagent %s", got)
	}
	if c.has(arcInputs) {
		t.Error("the token stays on the machine")
	}
	in := c.inputs
	if in["tags"] != "a=1,b=2" || in["resource-name"] != "one" || in["tenant-id"] != tenant || in["resource-group"] != "Edge" || in["location"] != "westeurope" || in["subscription-id"] != tenant || in["cloud"] != nil {
		t.Errorf("%v", in)
	}
	m, err := c.source.made()
	if err != nil || m.Machine == "" || len(m.Assignments) != 1 || !c.objects[strings.ToLower(m.Assignments[0])] {
		t.Fatalf("%+v, %v", m, err)
	}
	if err := c.register(); err != nil || slices.ContainsFunc(c.log, func(s string) bool { return !strings.HasPrefix(s, "GET ") && !strings.HasPrefix(s, "POST ") }) {
		t.Errorf("the second time: %v, %q", err, c.log)
	}
	c.log = nil
	if err := c.source.Register(context.Background(), c.r, true, func(string) {}); err != nil || len(c.log) > 0 {
		t.Errorf("a node: %v, %q", err, c.log)
	}
	if stayed := c.unregister(); len(stayed) > 0 || len(c.objects) > 0 || c.local || c.has(MadePath) {
		t.Errorf("%v; %v", stayed, c.objects)
	}
	if want := "show -j; disconnect --force-local-only"; strings.Join(c.args, "; ") != want || len(c.log) != 2 || !strings.Contains(c.log[0], "roleAssignments") {
		t.Errorf("%q, %q", c.args, c.log)
	}
}

// What was there before berth is nobody's to take away.
func TestRegisterAdopts(t *testing.T) {
	c := newCloud(t)
	c.local, c.objects[strings.ToLower(edge)] = true, true
	c.objects[strings.ToLower(UserAssignment(aks, principal).ID())] = true
	if err := c.register(); err != nil || c.has(MadePath) {
		t.Fatal(err)
	}
	if stayed := c.unregister(); len(stayed) > 0 || len(c.objects) != 2 || !c.local || len(c.log) > 0 {
		t.Errorf("%v; %v; %q", stayed, c.objects, c.log)
	}
}

// A run that was cut off while Azure made the machine is continued by the next one.
func TestRegisterCutOff(t *testing.T) {
	c := newCloud(t)
	c.cut = true
	if err := c.register(); err == nil || !c.has(MadePath) {
		t.Fatalf("%v", err)
	}
	c.cut = false
	if err := c.register(); err != nil || !slices.Contains(c.log, "DELETE Microsoft.HybridCompute/machines/one") || !c.local {
		t.Errorf("%v, %q", err, c.log)
	}
	c = newCloud(t)
	c.cut = true
	if err := c.register(); err == nil {
		t.Fatal("it was cut off")
	}
	if stayed := c.unregister(); len(stayed) > 0 || len(c.objects) > 0 {
		t.Errorf("%v; %v", stayed, c.objects)
	}
}

func TestRegisterRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		edit         func(*cloud)
		want, remedy string
	}{
		"no agent":   {func(c *cloud) { c.host.Remove("/usr/bin/azcmagent") }, "not on this machine", "Install the package azcmagent"},
		"other":      {func(c *cloud) { c.local, c.r.Name = true, "two" }, "registered already", "identity.arc"},
		"taken":      {func(c *cloud) { c.objects[strings.ToLower(edge)] = true }, "another machine", "machineName"},
		"no role":    {func(c *cloud) { c.fails = 42 }, "exit code 42: level=fatal", OnboardingRole},
		"name taken": {func(c *cloud) { c.fails = 44 }, "exit code 44", "machineName"},
		"nobody":     {func(c *cloud) { c.r.By = nil }, "not connected", "registration"},
		"no assign":  {func(c *cloud) { c.forbid = http.MethodPut }, "403", AssignerRole},
	} {
		c := newCloud(t)
		tc.edit(c)
		err := c.register()
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(hintOf(err), tc.remedy) || strings.Contains(err.Error(), "eyJ") {
			t.Errorf("%s: %v; %s", name, err, hintOf(err))
		}
		if name != "no assign" && c.has(MadePath) || c.has(arcInputs) {
			t.Errorf("%s: something stays", name)
		}
	}
}

// Two machines of one name register at once: the one that comes second deletes nothing
// of the first, neither when it joins again nor when it leaves.
func TestRegisterLosesRace(t *testing.T) {
	c := newCloud(t)
	c.rival, c.fails = true, 44
	for range 2 {
		if err := c.register(); err == nil || !strings.Contains(hintOf(err), "machineName") {
			t.Errorf("%v", err)
		}
		c.rival = false
	}
	if stayed := c.unregister(); len(stayed) > 0 || !c.objects[strings.ToLower(edge)] {
		t.Errorf("%v; %v", stayed, c.objects)
	}
}

// An agent that somebody connected as another machine since stays connected.
func TestUnregisterForeignAgent(t *testing.T) {
	c := newCloud(t)
	if err := c.register(); err != nil {
		t.Fatal(err)
	}
	c.name = "two"
	if stayed := c.unregister(); len(stayed) > 0 || len(c.objects) > 0 || !c.local {
		t.Errorf("%v; %v; %v", stayed, c.objects, c.local)
	}
}

// What can't be taken back is named, with what is still there.
func TestUnregisterRefused(t *testing.T) {
	c := newCloud(t)
	if err := c.register(); err != nil {
		t.Fatal(err)
	}
	c.forbid = http.MethodDelete
	stayed := c.unregister()
	if len(stayed) != 2 || !strings.Contains(fmt.Sprint(stayed), "roleAssignments") || !strings.Contains(fmt.Sprint(stayed), edge) || !c.local {
		t.Errorf("%v", stayed)
	}
	c.source.host.(*memory.Host).Program("/usr/bin/az", func(host.Command) host.Output { return host.Output{ExitCode: 1} })
	if stayed := c.unregister(); len(stayed) != 2 || len(c.log) > 0 {
		t.Errorf("%v, %q", stayed, c.log)
	}
}

// A secret out of the document is not kept.
func TestMadeKeepsNoSecret(t *testing.T) {
	c := newCloud(t)
	m := &made{Machine: edge}
	c.r.By = &desired.AzureIdentity{Kind: desired.AzureServicePrincipal, TenantID: tenant, ClientID: client, ServerID: client, ClientSecret: "hush"}
	m.by(c.r)
	if err := c.source.save(m); err != nil {
		t.Fatal(err)
	}
	if text, err := c.host.ReadFile(MadePath); err != nil || strings.Contains(string(text), "hush") {
		t.Errorf("%s, %v", text, err)
	}
	if stayed := c.unregister(); len(stayed) != 1 || !strings.Contains(stayed[0].Error(), "is not kept") {
		t.Errorf("%v", stayed)
	}
}

func FuzzMade(f *testing.F) {
	f.Add([]byte(`{"machine":"/a","by":{"kind":"arc","serverId":""},"way":{"cas":["x"]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := parseMade(text); err == nil {
			m.forget("/a")
			if !m.empty() && m.Machine == "" && len(m.Assignments) == 0 {
				t.Error("nothing is something")
			}
		}
	})
}
