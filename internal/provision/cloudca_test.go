package provision

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/cloudca"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/report"
)

const (
	anchorsDir = "/usr/local/share/ca-certificates"
	caBundle   = "/etc/ssl/certs/ca-certificates.crt"
)

func cloudCertificate(text string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(text)}))
}

// asked is a cloud that tells these certificates, or fails.
func asked(err error, certificates ...string) AskCloudCAs {
	return func(_ context.Context, _ bool, tell func(azure.CloudCAStep)) ([]string, error) {
		tell(azure.CloudCAStep{Name: "retrieveCerts", Start: time.Unix(0, 0), End: time.Unix(1, 0), Err: err})
		return certificates, err
	}
}

// TestCloudCAs: what the machine has been told counts where nobody answers, and nowhere else.
func TestCloudCAs(t *testing.T) {
	old, recent := cloudCertificate("old"), cloudCertificate("new")
	silent, answered := errors.New("nobody answers"), &azure.StatusError{Status: 404}
	for name, c := range map[string]struct {
		ask   AskCloudCAs
		known bool
		want  []string
		err   error
	}{
		"told":                       {ask: asked(nil, recent), known: true, want: []string{recent}},
		"told of none":               {ask: asked(nil), known: true},
		"nobody, known":              {ask: asked(silent), known: true, want: []string{old}},
		"nobody, unknown":            {ask: asked(silent), err: silent},
		"an answer of no use, known": {ask: asked(answered), known: true, want: []string{old}},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			h.Put(anchorsDir+"/customer.crt", cloudCertificate("customer"), 0o644)
			if c.known {
				h.Put(anchorsDir+"/"+cloudca.Prefix+"0.crt", old, 0o644)
			}
			got, err := cloudCAs(t.Context(), h, &component.CloudCA{Known: cloudca.Prefix}, c.ask, unobserved)
			if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, c.err) {
				t.Errorf("%v: %s", err, diff)
			}
		})
	}
}

// customCloud is a configuration for a cloud of its own.
func customCloud(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../contract/aks/testdata/minimal.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	doc["customCloudConfig"] = map[string]any{"customCloudEnvName": name}
	if text, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	return text
}

// trustingMachine has a trust store, and a configuration in force.
func trustingMachine(t *testing.T, document []byte) *memory.Host {
	t.Helper()
	h := memory.New()
	h.PutDir(anchorsDir)
	h.Put(anchorsDir+"/customer.crt", cloudCertificate("customer"), 0o644)
	h.Put(caBundle, "", 0o644)
	h.Program("/usr/sbin/update-ca-certificates", func(host.Command) host.Output {
		names, _ := h.ReadDir(anchorsDir)
		var all strings.Builder
		for _, n := range names {
			text, _ := h.ReadFile(anchorsDir + "/" + n)
			all.Write(text)
		}
		h.Put(caBundle, all.String(), 0o644)
		return host.Output{}
	})
	facts, err := json.Marshal(component.Facts{Hostname: "node-1", ContainerdVersion: "2.2.9", ContainerdPath: "/usr/bin/containerd"})
	if err != nil {
		t.Fatal(err)
	}
	if err := trial.Keep(h, desired.OwnerAKS, &trial.Contract{Document: document, Facts: facts}); err != nil {
		t.Fatal(err)
	}
	return h
}

func renewal(h host.Host, ask AskCloudCAs) CloudCAs {
	return CloudCAs{Ask: ask, Engine: func(document []byte, facts component.Facts, observe converge.Observer) *converge.Engine {
		text, _ := json.Marshal(facts)
		return converge.New(converge.Options{Host: h, Command: "test", Observer: observe, Trial: &converge.Trial{Contract: trial.Contract{Document: document, Facts: text}}})
	}}
}

// trusted are the certificates of the cloud in the machine's bundle, in the order of all.
func trusted(t *testing.T, h host.FS, all ...string) (in []string) {
	t.Helper()
	text, err := h.ReadFile(caBundle)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if strings.Contains(string(text), cloudCertificate(c)) {
			in = append(in, c)
		}
	}
	return in
}

// TestRenewCloudCAs: the machine trusts what the cloud tells now, what it tells no more is
// gone, others' certificates and all else stay as they are, and a run that goes back to the
// configuration has the new ones.
func TestRenewCloudCAs(t *testing.T) {
	h := trustingMachine(t, customCloud(t, "akscustom"))
	for _, told := range [][]string{{"a", "b"}, {"b", "c"}, {"b", "c"}, {}} {
		var certificates []string
		for _, c := range told {
			certificates = append(certificates, cloudCertificate(c))
		}
		if said, err := renewal(h, asked(nil, certificates...)).Renew(t.Context(), h); err != nil || said != "" {
			t.Fatalf("%v: %q, %v", told, said, err)
		}
		if len(told) > 0 { // the bundle is made again
			if diff := cmp.Diff(append([]string{}, told...), trusted(t, h, "a", "b", "c")); diff != "" {
				t.Errorf("%v: %s", told, diff)
			}
		}
		if names, _ := h.ReadDir(anchorsDir); len(names) != len(told)+1 {
			t.Errorf("%v: %v", told, names)
		}
		kept, err := trial.Good(h, desired.OwnerAKS)
		if err != nil {
			t.Fatal(err)
		}
		var facts component.Facts
		if err := json.Unmarshal(kept.Facts, &facts); err != nil || facts.Hostname != "node-1" {
			t.Fatalf("%+v: %v", facts, err)
		}
		if diff := cmp.Diff(certificates, facts.CloudCAs); diff != "" {
			t.Error(diff)
		}
	}
	if got := trusted(t, h, "customer", "a", "b", "c"); !cmp.Equal(got, []string{"customer"}) {
		t.Errorf("trusted in the end: %v", got)
	}
	if _, err := h.Lstat(kubelet.FlagsFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something else is looked at: %v", err)
	}
}

// TestRenewLeavesAlone: nothing changes where there is nothing to do, where the cloud fails,
// and while somebody is at work.
func TestRenewLeavesAlone(t *testing.T) {
	document := customCloud(t, "akscustom")
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		document []byte
		prepare  func(t *testing.T, h *memory.Host)
		fails    error
		says     string
		err      error
	}{
		"no configuration": {prepare: func(t *testing.T, h *memory.Host) {
			t.Helper()
			if err := h.Remove(trial.Dir + "/aks"); err != nil {
				t.Fatal(err)
			}
		}, says: "no configuration is in force yet"},
		"another cloud": {document: customCloud(t, "other"), says: "of no cloud that has"},
		"it fails":      {fails: refused, err: refused},
		"a run was cut off": {prepare: func(_ *testing.T, h *memory.Host) {
			h.Put(ledger.Path, `{"version":2,"entries":{},"found":{},"run":{"id":"x"}}`, 0o600)
		}, err: errBusy},
		"a change is on trial": {prepare: func(t *testing.T, h *memory.Host) {
			t.Helper()
			if err := (&trial.Note{Owner: desired.OwnerAKS}).Save(h); err != nil {
				t.Fatal(err)
			}
		}, err: errBusy},
	} {
		t.Run(name, func(t *testing.T) {
			if c.document == nil {
				c.document = document
			}
			h := trustingMachine(t, c.document)
			if c.prepare != nil {
				c.prepare(t, h)
			}
			said, err := renewal(h, asked(c.fails, cloudCertificate("a"))).Renew(t.Context(), h)
			if !strings.Contains(said, c.says) || !errors.Is(err, c.err) {
				t.Errorf("%q, %v", said, err)
			}
			if names, _ := h.ReadDir(anchorsDir); len(names) != 1 || len(trusted(t, h, "a")) != 0 {
				t.Errorf("the trust store has changed: %v", names)
			}
		})
	}
}

// TestRenewTellsTheGuestAgent: of each step, by its published name, also where it fails; of
// nothing where nothing is asked.
func TestRenewTellsTheGuestAgent(t *testing.T) {
	refused := errors.New("refused")
	const asks = "AKS.CSE.rcv1p.certEndpointMode Informational Completed: ask cloud-ca:certEndpointMode: mode=rcv1p, location="
	id, err := cloudca.Anchors([]string{cloudCertificate("a")})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		document []byte
		fails    error
		update   int
		want     []string
	}{
		"another cloud": {document: customCloud(t, "other")},
		"told": {want: []string{
			"AKS.AKSNodeController.Names Informational Completed: update names",
			"AKS.CSE.rcv1p.installCertsToTrustStore Informational Completed: create " + string(id[0].ID()),
			"AKS.CSE.rcv1p.installCertsToTrustStore Informational Completed: update " + string(id[0].ID()),
			"AKS.CSE.rcv1p.retrieveCerts Informational Completed: ask cloud-ca:retrieveCerts", asks + "westeurope"}},
		"not told": {fails: refused, want: []string{"AKS.CSE.rcv1p.retrieveCerts Error Failed: ask cloud-ca:retrieveCerts: refused", asks + "westeurope"}},
		"not taken": {update: 1, want: []string{
			"AKS.AKSNodeController.Names Informational Completed: update names",
			"AKS.CSE.rcv1p.installCertsToTrustStore Informational Completed: create " + string(id[0].ID()),
			"AKS.CSE.rcv1p.installCertsFailed Error Failed: update " + string(id[0].ID()),
			"AKS.CSE.rcv1p.retrieveCerts Informational Completed: ask cloud-ca:retrieveCerts", asks + "westeurope"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.document == nil {
				c.document = customCloud(t, "akscustom")
			}
			h := trustingMachine(t, c.document)
			if c.update != 0 {
				h.Program("/usr/sbin/update-ca-certificates", func(host.Command) host.Output { return host.Output{ExitCode: c.update} })
			}
			_, err := renewal(h, asked(c.fails, cloudCertificate("a"))).Renew(t.Context(), h)
			if (err != nil) != (c.fails != nil || c.update != 0) {
				t.Error(err)
			}
			names, err := h.ReadDir(report.EventsDir)
			if (err != nil) != (c.want == nil) {
				t.Fatal(err)
			}
			var got []string
			for _, n := range names {
				text, err := h.ReadFile(report.EventsDir + "/" + n)
				if err != nil {
					t.Fatal(err)
				}
				var e report.Event
				if err := json.Unmarshal(text, &e); err != nil {
					t.Fatal(err)
				}
				message, _, _ := strings.Cut(e.Message, " | startTime=")
				got = append(got, e.TaskName+" "+e.EventLevel+" "+message)
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if len(got) != len(c.want) {
				t.Fatalf("%q, want %q", got, c.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("%q, want %q", got[i], c.want[i])
				}
			}
		})
	}
}

// TestRenewNotesBeforeItChanges: the agent may look at the machine as soon as something has
// changed, and goes by what is noted then. What fails after that is noted, and done next time.
func TestRenewNotesBeforeItChanges(t *testing.T) {
	h := trustingMachine(t, customCloud(t, "akscustom"))
	var noted []string
	c := renewal(h, asked(nil, cloudCertificate("a")))
	engine := c.Engine
	c.Engine = func(document []byte, facts component.Facts, observe converge.Observer) *converge.Engine {
		kept, err := trial.Good(h, desired.OwnerAKS)
		if err != nil {
			t.Fatal(err)
		}
		var was component.Facts
		if err := json.Unmarshal(kept.Facts, &was); err != nil {
			t.Fatal(err)
		}
		noted = was.CloudCAs
		return engine(document, facts, observe)
	}
	if said, err := c.Renew(t.Context(), h); err != nil || said != "" {
		t.Fatalf("%q, %v", said, err)
	}
	if diff := cmp.Diff([]string{cloudCertificate("a")}, noted); diff != "" {
		t.Error(diff)
	}
}

// TestRenewYieldsToAnotherConfiguration: one that comes while the cloud is asked counts.
func TestRenewYieldsToAnotherConfiguration(t *testing.T) {
	h := trustingMachine(t, customCloud(t, "akscustom"))
	other := &trial.Contract{Document: customCloud(t, "AKSCustom")}
	ask := func(context.Context, bool, func(azure.CloudCAStep)) ([]string, error) {
		return []string{cloudCertificate("a")}, trial.Keep(h, desired.OwnerAKS, other)
	}
	if _, err := renewal(h, ask).Renew(t.Context(), h); !errors.Is(err, errBusy) {
		t.Error(err)
	}
	if kept, err := trial.Good(h, desired.OwnerAKS); err != nil || !kept.Same(other) || len(trusted(t, h, "a")) != 0 {
		t.Errorf("%+v, %v", kept, err)
	}
}
