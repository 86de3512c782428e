package azure

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"encoding/pem"

	"github.com/berth-dev/berth/internal/desired"
)

const principal = "44444444-4444-4444-4444-444444444444"

// arm is Azure Resource Manager: it refuses what the real one refuses, and remembers
// what it was asked.
type arm struct {
	t           *testing.T
	mu          sync.Mutex
	log, bodies []string
	// answers are by method, one after the other; the last stays.
	answers map[string][]http.HandlerFunc
}

func (a *arm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	provider, _, _ := strings.Cut(r.URL.Path[max(strings.LastIndex(r.URL.Path, "Microsoft."), 0):], "/")
	versions := map[string]string{"Microsoft.HybridCompute": "2022-03-10", "Microsoft.Authorization": "2022-04-01", "Microsoft.ContainerService": "2024-02-01"}
	if got := r.URL.Query().Get("api-version"); got != versions[provider] {
		a.t.Errorf("%s %s with api-version %q", r.Method, r.URL.Path, got)
	}
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ey") {
		a.t.Errorf("%s %s without a token", r.Method, r.URL.Path)
	}
	if len(body) > 0 && r.Header.Get("Content-Type") != "application/json" {
		a.t.Errorf("a body of type %q", r.Header.Get("Content-Type"))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.log, a.bodies = append(a.log, r.Method+" "+r.URL.Path), append(a.bodies, string(body))
	queue := a.answers[r.Method]
	if len(queue) == 0 {
		refuse(http.StatusNotFound, "ResourceNotFound")(w, r)
		return
	}
	if len(queue) > 1 {
		a.answers[r.Method] = queue[1:]
	}
	queue[0](w, r)
}

func resourceManager(t *testing.T, answers map[string][]http.HandlerFunc) (*Manager, *arm) {
	t.Helper()
	a := &arm{t: t, answers: answers}
	tls := httptest.NewTLSServer(a)
	t.Cleanup(tls.Close)
	h := machine()
	claims := good(h.Now(), time.Hour)
	claims["aud"] = tls.URL
	via := &desired.Egress{CAs: []string{string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}))}}
	m, err := sourceAt(h, serve(t, give(jwt(claims)))).Manager(context.Background(), managed(), via, tls.URL+"/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, a
}

func refuse(status int, code string) http.HandlerFunc {
	return say(status, fmt.Sprintf(`{"error":{"code":%q,"message":"said"}}`, code))
}

// busy is an answer that asks to be left alone for a moment.
func busy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "0")
	w.WriteHeader(http.StatusTooManyRequests)
}

var edge = MachineID("11111111-1111-1111-1111-111111111111", "Edge", "one")

func TestMachine(t *testing.T) {
	m, a := resourceManager(t, map[string][]http.HandlerFunc{"GET": {busy, say(200, `{"id":"`+edge+`","identity":{"principalId":"`+principal+`"},"properties":{"status":"Connected"}}`)}})
	got, err := m.Machine(context.Background(), edge)
	if err != nil || got == nil || got.ID != edge || got.PrincipalID != principal || got.Status != "Connected" {
		t.Fatalf("%+v, %v", got, err)
	}
	if want := []string{"GET " + edge, "GET " + edge}; fmt.Sprint(a.log) != fmt.Sprint(want) {
		t.Errorf("%q", a.log)
	}
}

func TestMachineRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		answer       http.HandlerFunc
		want, remedy string
	}{
		"no machine":   {refuse(404, "ResourceNotFound"), "", ""},
		"no group":     {refuse(404, "ResourceGroupNotFound"), "ResourceGroupNotFound", "resourceGroup"},
		"no role":      {refuse(403, "AuthorizationFailed"), "403", OnboardingRole},
		"stranger":     {refuse(401, "InvalidAuthenticationTokenTenant"), "401", "tenant"},
		"out of order": {say(503, ""), "503", "busy"},
		"conflict":     {refuse(409, "Conflict"), "409", "again"},
		"no provider":  {refuse(404, "SubscriptionNotFound"), "SubscriptionNotFound", "subscriptionId"},
		"a proxy":      {say(404, ""), "404", "subscriptionId"},
		"no JSON":      {say(200, "<"), "can't be read", "again"},
	} {
		m, _ := resourceManager(t, map[string][]http.HandlerFunc{"GET": {tc.answer}})
		got, err := m.Machine(context.Background(), edge)
		if got != nil || (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.Contains(hintOf(err), tc.remedy)) {
			t.Errorf("%s: %+v, %v; %s", name, got, err, hintOf(err))
		}
	}
}

func TestDeleteMachine(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"done": say(200, ""), "nothing there": say(204, ""), "gone": refuse(404, "ResourceNotFound")} {
		m, a := resourceManager(t, map[string][]http.HandlerFunc{"DELETE": {answer}})
		if err := m.DeleteMachine(context.Background(), edge); err != nil || len(a.log) != 1 {
			t.Errorf("%s: %v, %q", name, err, a.log)
		}
	}
	m, _ := resourceManager(t, map[string][]http.HandlerFunc{"DELETE": {refuse(403, "AuthorizationFailed")}})
	if err := m.DeleteMachine(context.Background(), edge); err == nil || !strings.Contains(hintOf(err), MachineAdministratorRole) {
		t.Errorf("%v; %s", err, hintOf(err))
	}
}

// An operation that goes on is waited for, where Azure says; the token goes nowhere else.
func TestDeleteMachineGoesOn(t *testing.T) {
	accepted := func(header, where string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(header, strings.ReplaceAll(where, "HERE", "https://"+r.Host))
			w.WriteHeader(http.StatusAccepted)
		}
	}
	for name, tc := range map[string]struct {
		first http.HandlerFunc
		then  []http.HandlerFunc
		asked int
		want  string
	}{
		"operation": {accepted("Azure-AsyncOperation", "HERE/subscriptions/x/operations/1"), []http.HandlerFunc{say(200, `{"status":"Deleting"}`), busy, say(200, `{"status":"Succeeded"}`)}, 4, ""},
		"location":  {accepted("Location", "HERE/subscriptions/x/operations/1"), []http.HandlerFunc{say(202, ""), say(204, "")}, 3, ""},
		"moved":     {accepted("Location", "HERE/subscriptions/x/operations/1"), []http.HandlerFunc{say(302, "")}, 2, "HTTP status 302"},
		"ended":     {accepted("Location", "HERE/subscriptions/x/operations/1"), []http.HandlerFunc{refuse(404, "NotFound")}, 2, ""},
		"failed":    {accepted("Location", "HERE/subscriptions/x/operations/1"), []http.HandlerFunc{say(200, `{"status":"Failed","error":{"code":"Locked","message":"a lock"}}`)}, 2, "Locked: a lock"},
		"elsewhere": {accepted("Location", "https://elsewhere.example/1"), nil, 1, "names no URL"},
		"nowhere":   {say(202, ""), nil, 1, "names no URL"},
	} {
		m, a := resourceManager(t, map[string][]http.HandlerFunc{"DELETE": {tc.first}, "GET": tc.then})
		err := m.DeleteMachine(context.Background(), edge)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) || len(a.log) != tc.asked {
			t.Errorf("%s: %v after %q", name, err, a.log)
		}
	}
}

// A token that ends while Azure is waited for is followed by another one.
func TestManagerRenewsItsToken(t *testing.T) {
	m, a := resourceManager(t, map[string][]http.HandlerFunc{"GET": {refuse(404, "ResourceNotFound")}})
	old := m.token
	m.token.Text, m.token.Expires = "eyJold", m.source.host.Now().Add(time.Minute)
	if _, err := m.Machine(context.Background(), edge); err != nil || len(a.log) != 1 || m.token.Text != old.Text {
		t.Errorf("%v, %q", err, a.log)
	}
}

// What is not there went with its group, too; another 404 says nothing of it.
func TestGone(t *testing.T) {
	for code, want := range map[string]bool{"ResourceNotFound": true, "HCRP404": true, "RoleAssignmentNotFound": true, "ResourceGroupNotFound": true, "SubscriptionNotFound": false, "": false} {
		m, _ := resourceManager(t, map[string][]http.HandlerFunc{"DELETE": {refuse(404, code)}})
		if err := m.DeleteMachine(context.Background(), edge); (err == nil) != want {
			t.Errorf("%s: %v", code, err)
		}
		if err := m.Unassign(context.Background(), UserAssignment(aks, principal).ID()); (err == nil) != want {
			t.Errorf("%s: %v", code, err)
		}
	}
}

func TestAssign(t *testing.T) {
	m, a := resourceManager(t, map[string][]http.HandlerFunc{"PUT": {busy, say(201, "{}")}})
	want := UserAssignment(aks, principal)
	if made, err := m.Assign(context.Background(), want); err != nil || !made {
		t.Fatal(made, err)
	}
	if a.log[1] != "PUT "+want.ID() || !strings.HasPrefix(want.ID(), aks+"/providers/Microsoft.Authorization/roleAssignments/") {
		t.Errorf("%q", a.log)
	}
	var body struct{ Properties map[string]string }
	if err := json.Unmarshal([]byte(a.bodies[1]), &body); err != nil {
		t.Fatal(err)
	}
	if p := body.Properties; len(p) != 3 || p["principalId"] != principal || p["principalType"] != "ServicePrincipal" ||
		p["roleDefinitionId"] != "/subscriptions/11111111-1111-1111-1111-111111111111/providers/Microsoft.Authorization/roleDefinitions/4abbcc35-e782-43d8-92c5-2d3f1bd2253f" {
		t.Errorf("%v", p)
	}
}

// The name of an assignment is that of what it says, whoever writes it.
func TestAssignmentName(t *testing.T) {
	one, again := UserAssignment(aks, principal), UserAssignment(strings.ToUpper(aks), strings.ToUpper(principal))
	if name := func(a Assignment) string { return a.ID()[len(a.ID())-36:] }; name(one) != name(again) || name(one) == name(UserAssignment(aks, other)) || name(one)[14] != '5' {
		t.Errorf("%s, %s", one.ID(), again.ID())
	}
}

func TestAssignRefused(t *testing.T) {
	m, _ := resourceManager(t, map[string][]http.HandlerFunc{"PUT": {refuse(409, "RoleAssignmentExists"), refuse(403, "AuthorizationFailed"), refuse(409, "RoleAssignmentLimitExceeded")}})
	if made, err := m.Assign(context.Background(), UserAssignment(aks, principal)); made || err != nil {
		t.Errorf("somebody else's: %v, %v", made, err)
	}
	if _, err := m.Assign(context.Background(), UserAssignment(aks, principal)); err == nil || !strings.Contains(hintOf(err), AssignerRole) {
		t.Errorf("%v; %s", err, hintOf(err))
	}
	if made, err := m.Assign(context.Background(), UserAssignment(aks, principal)); made || !isCode(err, "RoleAssignmentLimitExceeded") {
		t.Errorf("%v, %v", made, err)
	}
}

func TestAssigned(t *testing.T) {
	id := UserAssignment(aks, principal).ID()
	m, _ := resourceManager(t, map[string][]http.HandlerFunc{"GET": {refuse(404, "RoleAssignmentNotFound"), say(200, "{}"), refuse(403, "AuthorizationFailed")}})
	for i, want := range []bool{false, true} {
		if got, err := m.Assigned(context.Background(), id); got != want || err != nil {
			t.Errorf("%d: %v, %v", i, got, err)
		}
	}
	if _, err := m.Assigned(context.Background(), id); err == nil {
		t.Error("what may not be seen is not there")
	}
}

func TestUnassign(t *testing.T) {
	id := UserAssignment(aks, principal).ID()
	m, a := resourceManager(t, map[string][]http.HandlerFunc{"DELETE": {say(200, "{}"), say(204, ""), refuse(403, "AuthorizationFailed")}})
	for range 2 {
		if err := m.Unassign(context.Background(), id); err != nil {
			t.Error(err)
		}
	}
	if err := m.Unassign(context.Background(), id); err == nil || a.log[2] != "DELETE "+id {
		t.Errorf("%v, %q", err, a.log)
	}
}

// A role that was given just now is waited for by asking for what it allows.
func TestClusterWaitsForTheRole(t *testing.T) {
	no, yes := refuse(403, "AuthorizationFailed"), say(200, userCredentialOf("https://one.example:443", somePEM))
	m, a := resourceManager(t, map[string][]http.HandlerFunc{"POST": {no, no, yes}})
	if _, err := m.Cluster(context.Background(), aks, true); err != nil || len(a.log) != 3 {
		t.Errorf("%v after %q", err, a.log)
	}
	m, a = resourceManager(t, map[string][]http.HandlerFunc{"POST": {no, yes}})
	if _, err := m.Cluster(context.Background(), aks, false); err == nil || len(a.log) != 1 {
		t.Errorf("nothing was given: %v after %q", err, a.log)
	}
}
