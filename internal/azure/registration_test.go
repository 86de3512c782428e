package azure

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
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
	t      *testing.T
	host   *memory.Host
	source *Source
	r      *component.ArcRegistration
	// objects are by resource id, in lower case; of a machine its tags.
	objects map[string]string
	log     []string
	args    []string
	inputs  map[string]any
	local   bool // the agent is connected
	// fails is the exit code of azcmagent connect, forbid a method that Azure refuses, cut
	// ends connect after Azure has made the machine and before the agent knows.
	fails  int
	forbid string
	cut    bool
	// lost: the answer to the PUT of an assignment is lost, and it is there; elsewhere: the
	// principal has the role by another assignment; unknown is how often Azure does not
	// find the principal.
	lost, elsewhere bool
	unknown         int
	said            []string
	// name is what the agent is connected as, if not as in the document; rival registers
	// the name just before the agent does.
	name  string
	rival bool
	// fetch brings the agent's package.
	fetch Fetch
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{t: t, host: machine(), objects: map[string]string{}}
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
			return host.Output{Stdout: []byte(`{"status":"Connected","resourceName":"` + cmp.Or(c.name, c.r.Name) + `","resourceGroup":"edge","subscriptionId":"` + tenant + `"}`)}
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
		if made, err := c.source.made(); err != nil || len(made.Notes) == 0 || !SameResource(made.Notes[len(made.Notes)-1].ID, c.machine()) {
			c.t.Errorf("the agent was called before it was noted: %+v, %v", made, err)
		}
		if c.rival {
			c.objects[c.machine()] = "owner=rival"
		}
		if c.fails != 0 {
			return host.Output{ExitCode: c.fails, Stdout: []byte("level=fatal msg=\"AZCM0042: no\"\n")}
		}
		c.objects[c.machine()], _ = c.inputs["tags"].(string)
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

// machine is the one of the document.
func (c *cloud) machine() string {
	return strings.ToLower(MachineID(c.r.SubscriptionID, c.r.ResourceGroup, c.r.Name))
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	id := strings.ToLower(r.URL.Path)
	c.log = append(c.log, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "Microsoft."):])
	switch {
	case r.Method == c.forbid:
		refuse(403, "AuthorizationFailed")(w, r)
	case r.Method == http.MethodPut && c.unknown > 0:
		c.unknown--
		refuse(400, "PrincipalNotFound")(w, r)
	case r.Method == http.MethodPut && c.elsewhere:
		refuse(409, "RoleAssignmentExists")(w, r)
	case r.Method == http.MethodPut:
		if c.lost {
			refuse(409, "RoleAssignmentExists")(w, r)
		} else {
			w.WriteHeader(http.StatusCreated)
		}
		c.objects[id] = ""
	case r.Method == http.MethodDelete:
		delete(c.objects, id)
	case r.Method == http.MethodPost:
		say(200, userCredentialOf("https://one.example:443", somePEM))(w, r)
	case !c.in(id):
		refuse(404, "ResourceNotFound")(w, r)
	default:
		tags := map[string]string{}
		for _, tag := range strings.Split(c.objects[id], ",") {
			name, value, _ := strings.Cut(tag, "=")
			tags[name] = value
		}
		who := principal
		if tags["owner"] == "rival" {
			who = other
		}
		text, _ := json.Marshal(map[string]any{"tags": tags, "identity": map[string]string{"principalId": who}})
		say(200, string(text))(w, r)
	}
}

func (c *cloud) in(id string) bool {
	_, ok := c.objects[strings.ToLower(id)]
	return ok
}

func (c *cloud) register() error { return c.registers(false) }

func (c *cloud) registers(settled bool) error {
	c.log, c.args, c.said = nil, nil, nil
	return c.source.Register(context.Background(), c.r, settled, c.fetch, func(s string) { c.said = append(c.said, s) })
}

func (c *cloud) unregister() []error { return c.unregisters(nil) }

func (c *cloud) unregisters(s Secret) []error {
	c.log, c.args, c.said = nil, nil, nil
	return c.source.Unregister(context.Background(), s, func(s string) { c.said = append(c.said, s) })
}

// note is the only one that is kept.
func (c *cloud) note() *note {
	c.t.Helper()
	m, err := c.source.made()
	if err != nil || len(m.Notes) != 1 {
		c.t.Fatalf("%+v, %v", m, err)
	}
	return m.Notes[0]
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
	if n := c.note(); in["tags"] != "a=1,b=2,berth-registration="+n.Tag || len(n.Tag) != 36 || n.Principal != principal || !n.Made ||
		len(n.Assignments) != 1 || !c.in(n.Assignments[0]) {
		t.Errorf("%v, %+v", in, n)
	}
	if in["resource-name"] != "one" || in["tenant-id"] != tenant || in["resource-group"] != "Edge" || in["location"] != "westeurope" || in["subscription-id"] != tenant || in["cloud"] != nil {
		t.Errorf("%v", in)
	}
	if err := c.register(); err != nil || slices.ContainsFunc(c.log, func(s string) bool { return !strings.HasPrefix(s, "GET ") && !strings.HasPrefix(s, "POST ") }) {
		t.Errorf("the second time: %v, %q", err, c.log)
	}
	c.log = nil
	if err := c.source.Register(context.Background(), c.r, true, nil, func(string) {}); err != nil || len(c.log) > 0 {
		t.Errorf("a node: %v, %q", err, c.log)
	}
	if stayed := c.unregister(); len(stayed) > 0 || len(c.objects) > 0 || c.local || c.has(MadePath) {
		t.Errorf("%v; %v", stayed, c.objects)
	}
	if want := "show -j; disconnect --force-local-only"; strings.Join(c.args, "; ") != want || len(c.log) != 3 || !strings.Contains(c.log[0], "roleAssignments") {
		t.Errorf("%q, %q", c.args, c.log)
	}
}

// What was there before berth is nobody's to take away.
func TestRegisterAdopts(t *testing.T) {
	c := newCloud(t)
	c.local, c.objects[c.machine()] = true, ""
	c.objects[strings.ToLower(UserAssignment(aks, principal).ID())] = ""
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
		"other":      {func(c *cloud) { c.local, c.name, c.r.Name = true, "one", "two" }, "registered already", "identity.arc"},
		"taken":      {func(c *cloud) { c.objects[c.machine()] = "" }, "another machine", "machineName"},
		"no role":    {func(c *cloud) { c.fails = 42 }, "exit code 42: level=fatal", OnboardingRole},
		"name taken": {func(c *cloud) { c.fails = 44 }, "exit code 44", "machineName"},
		"no way out": {func(c *cloud) { c.fails = 62 }, "exit code 62", "azcmagent check"},
		"something":  {func(c *cloud) { c.fails = 1 }, "exit code 1:", "azcmagent logs"},
		"gone":       {func(c *cloud) { c.local = true }, "not in Azure any more", "disconnect --force-local-only"},
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

// Nothing is to be undone of an assignment that Azure has refused.
func TestRefusedAssignmentIsForgotten(t *testing.T) {
	c := newCloud(t)
	c.local, c.objects[c.machine()], c.forbid = true, "", http.MethodPut
	if err := c.register(); err == nil || !strings.Contains(err.Error(), "403") || hintOf(err) == "" {
		t.Fatal(err)
	}
	if c.has(MadePath) {
		t.Error("the note of it stays")
	}
	c.forbid = http.MethodDelete
	if stayed := c.unregister(); len(stayed) > 0 {
		t.Errorf("%v", stayed)
	}
}

// What Azure said last says best why, also where the time is over during a request.
func TestPersistTellsLastAnswer(t *testing.T) {
	m := &Manager{source: &Source{host: machine(), endpoints: endpoints{pause: time.Microsecond}}}
	asked := 0
	got, err := m.persist(t.Context(), 50*time.Millisecond, func(ctx context.Context) (answer, error) {
		if asked++; asked == 1 {
			return answer{status: http.StatusForbidden}, nil
		}
		<-ctx.Done()
		return answer{}, ctx.Err()
	}, func(answer) bool { return true })
	if err != nil || got.status != http.StatusForbidden {
		t.Errorf("%+v, %v", got, err)
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
	if stayed := c.unregister(); len(stayed) > 0 || !c.in(edge) {
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
	m := &made{}
	m.of(edge).begin()
	c.r.By = &desired.AzureIdentity{Kind: desired.AzureServicePrincipal, TenantID: tenant, ClientID: client, ServerID: client, ClientSecret: "hush"}
	m.of(edge).by(c.r)
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

// A secret that is in a configuration yet takes back what its owner made, and no other.
func TestUnregisterBySecret(t *testing.T) {
	c := newCloud(t)
	if err := c.register(); err != nil {
		t.Fatal(err)
	}
	m, err := c.source.made()
	if err != nil {
		t.Fatal(err)
	}
	m.Notes[0].By = &desired.AzureIdentity{Kind: desired.AzureServicePrincipal, TenantID: tenant, ClientID: client, ServerID: client, Authority: "https://nowhere.invalid"}
	if err := c.source.save(m); err != nil {
		t.Fatal(err)
	}
	who := *m.Notes[0].By
	who.ClientID = other
	for want, secret := range map[string]Secret{
		"is not kept":            nil,
		"the file is gone":       func() (*desired.AzureIdentity, error) { return nil, errors.New("the file is gone") },
		"another identity":       func() (*desired.AzureIdentity, error) { return &who, nil },
		"another identity than ": func() (*desired.AzureIdentity, error) { return nil, nil },
	} {
		if stayed := c.unregisters(secret); len(stayed) != 2 || !strings.Contains(stayed[0].Error(), want) || !c.has(MadePath) {
			t.Errorf("%s: %v", want, stayed)
		}
	}
	got, err := proven(m.Notes[0].By, func() (*desired.AzureIdentity, error) {
		return &desired.AzureIdentity{Kind: desired.AzureServicePrincipal, TenantID: tenant, ClientID: strings.ToUpper(client), ClientSecret: "hush"}, nil
	})
	if err != nil || got.ClientSecret != "hush" || got.Authority != "https://nowhere.invalid" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A node needs nothing of an agent that is ill.
func TestRegisterOfNodeWithIllAgent(t *testing.T) {
	c := newCloud(t)
	c.host.Program("/usr/bin/azcmagent", func(host.Command) host.Output { return host.Output{ExitCode: 1} })
	if err := c.registers(true); err != nil || len(c.said) != 1 || !strings.Contains(c.said[0], "left as it is") {
		t.Errorf("%v, %q", err, c.said)
	}
	if err := c.registers(false); err == nil {
		t.Error("a machine that is none needs it")
	}
}

// TestRegisterOfNode: a node whose agent somebody disconnected is registered anew where
// that can be done, and goes on without where it can't; so does one that is registered
// under another name, as after a change of the host's.
func TestRegisterOfNode(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*cloud)
		connected bool
		said      string
	}{
		"disconnected": {func(c *cloud) { c.local = false }, true, "registered the machine"},
		"without a secret": {func(c *cloud) {
			c.local, c.r.By = false, &desired.AzureIdentity{Kind: desired.AzureServicePrincipal, TenantID: tenant, ClientID: client, ClientSecretFile: "/nowhere"}
		}, false, "left as it is"},
		"of another name": {func(c *cloud) { c.name, c.r.Name = "one", "two" }, true, "registered already, as"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloud(t)
			if err := w.register(); err != nil {
				t.Fatal(err)
			}
			c.meanwhile(w)
			if err := w.registers(true); err != nil || w.local != c.connected || !strings.Contains(strings.Join(w.said, "\n"), c.said) {
				t.Errorf("%v, connected: %v, said %q", err, w.local, w.said)
			}
			if err := w.registers(false); name != "disconnected" && err == nil {
				t.Error("a machine that is no node needs it")
			}
		})
	}
}

// TestRegisterOfNodeWithoutItsRole: a node that was registered anew and could not be given its
// role gets it by the next join, though the agent is connected by then.
func TestRegisterOfNodeWithoutItsRole(t *testing.T) {
	c := newCloud(t)
	if err := c.register(); err != nil || c.note().Owed {
		t.Fatal(err)
	}
	role := c.note().Assignments[0]
	delete(c.objects, strings.ToLower(role)) // Azure took it away with the machine
	c.local, c.forbid = false, http.MethodPut
	if err := c.registers(true); err != nil || !c.local || !c.note().Owed || c.in(role) {
		t.Fatalf("%v, %+v, said %q", err, c.note(), c.said)
	}
	c.forbid = ""
	if err := c.registers(true); err != nil || !c.in(role) || c.note().Owed {
		t.Errorf("%v, %+v, %q", err, c.note(), c.log)
	}
	if err := c.registers(true); err != nil || len(c.log) > 0 {
		t.Errorf("again: %v, %q", err, c.log)
	}
}

// What was registered under an earlier name goes, too.
func TestRegisterUnderAnotherName(t *testing.T) {
	c := newCloud(t)
	if err := c.register(); err != nil {
		t.Fatal(err)
	}
	c.local, c.r.Name = false, "two" // somebody disconnected it
	if err := c.register(); err != nil || !c.in(edge) {
		t.Fatalf("%v, %v", err, c.objects)
	}
	if stayed := c.unregister(); len(stayed) > 0 || len(c.objects) > 0 || c.local || c.has(MadePath) {
		t.Errorf("%v; %v", stayed, c.objects)
	}
}

// An assignment whose answer was lost is berth's own; one of another name is not.
func TestRegisterRoleExists(t *testing.T) {
	c := newCloud(t)
	c.lost = true
	if err := c.register(); err != nil || len(c.note().Assignments) != 1 {
		t.Errorf("%v, %+v", err, c.note())
	}
	c = newCloud(t)
	c.elsewhere = true
	if err := c.register(); err != nil || len(c.note().Assignments) != 0 {
		t.Errorf("%v, %+v", err, c.note())
	}
}

// Azure does not know at once of an identity that it made.
func TestRegisterPrincipalNotFound(t *testing.T) {
	c := newCloud(t)
	c.unknown = 2
	if err := c.register(); err != nil || c.unknown != 0 || len(c.note().Assignments) != 1 {
		t.Errorf("%v, %q", err, c.log)
	}
}

// The agent is connected to a machine that is in Azure no more: nobody waits for it.
func TestRegisterMachineGone(t *testing.T) {
	c := newCloud(t)
	c.local = true
	if err := c.register(); err == nil || len(c.log) != 1 {
		t.Errorf("%v, %q", err, c.log)
	}
}

// A run that was killed while the agent worked leaves no token to the next one.
func TestInputsGo(t *testing.T) {
	for name, run := range map[string]func(*cloud){
		"register":   func(c *cloud) { c.local = true; _ = c.registers(true) },
		"unregister": func(c *cloud) { c.unregister() },
	} {
		c := newCloud(t)
		c.host.Put(arcInputs, `{"access-token":"eyJ"}`, 0o600)
		if run(c); c.has(arcInputs) {
			t.Errorf("%s: the token stays", name)
		}
	}
}

// A run was killed before the agent began, and then somebody else registered a machine of
// that name: it is not berth's to delete.
func TestForeignMachineOfOurName(t *testing.T) {
	c := newCloud(t)
	m := &made{}
	m.of(edge).begin()
	m.of(edge).by(c.r)
	if err := c.source.save(m); err != nil {
		t.Fatal(err)
	}
	c.objects[c.machine()] = "owner=rival"
	if err := c.register(); err == nil || !strings.Contains(hintOf(err), "machineName") || !c.in(edge) {
		t.Errorf("%v, %v", err, c.objects)
	}
	if stayed := c.unregister(); len(stayed) > 0 || !c.in(edge) || c.has(MadePath) || !strings.Contains(fmt.Sprint(c.said), "somebody else") {
		t.Errorf("%v, %v, %q", stayed, c.objects, c.said)
	}
}

// A machine whose tags somebody changed is known by its identity.
func TestUnregisterWithoutTag(t *testing.T) {
	c := newCloud(t)
	if err := c.register(); err != nil {
		t.Fatal(err)
	}
	c.objects[c.machine()] = "team=a"
	if stayed := c.unregister(); len(stayed) > 0 || len(c.objects) > 0 {
		t.Errorf("%v, %v", stayed, c.objects)
	}
}
