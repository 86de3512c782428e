package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/join"
	"github.com/berth-dev/berth/internal/report"
)

// TestJoinRefuses: what can't be joined with is refused before anything is touched, with
// a code and a remedy, on the terminal and in the result.
func TestJoinRefuses(t *testing.T) {
	bad := path.Join(t.TempDir(), "bad.yaml")
	write(t, bad, "apiVersion: berth.dev/v1alpha1\nkind: NodeConfig\ncluster: {server: 'http://x'}\n")
	for name, c := range map[string]struct {
		args   []string
		code   int
		stderr []string
		field  string
	}{
		"a document of another kind": {[]string{"-f", sample, "-ojson"}, exitcode.Refused, []string{"joining takes a NodeConfig", "hint: berth apply"}, ""},
		"errors":                     {[]string{"-f", bad, "-ojson"}, exitcode.Refused, []string{"line 3: cluster.server", "identity"}, "cluster.server"},
		"a CA that is not there":     {[]string{"-f", ownDocument, "-ojson"}, exitcode.Refused, []string{"cluster.caFile: Not found"}, "cluster.caFile"},
		"no file":                    {[]string{"-f", "/nowhere", "-ojson"}, exitcode.Failed, []string{"no such file"}, ""},
		"nothing":                    {nil, exitcode.Failed, []string{"-f FILE is missing"}, ""},
		"a milestone":                {[]string{"-f", ownDocument, "--wait-for", "tea"}, exitcode.Failed, []string{"registered or ready"}, ""},
		"a format":                   {[]string{"-f", ownDocument, "-oxml"}, exitcode.Failed, []string{"must be text, json or yaml"}, ""},
		"a time":                     {[]string{"-f", ownDocument, "--timeout", "-1s"}, exitcode.Failed, []string{"must not be negative"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			before := h.Tree("/etc")
			code, stdout, stderr := invoke(h, append([]string{"berth", "join"}, c.args...)...)
			if code != c.code {
				t.Errorf("exit code %d: %s", code, stderr)
			}
			for _, want := range c.stderr {
				if !strings.Contains(stderr, want) {
					t.Errorf("no %q in\n%s", want, stderr)
				}
			}
			if len(c.args) < 3 || c.args[2] != "-ojson" {
				return
			}
			var r report.Join
			if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.ExitCode != c.code || r.Failure == nil || r.Failure.Hint == "" || !strings.Contains(r.Failure.Field, c.field) {
				t.Errorf("%v: %s", err, stdout)
			}
			if diff := cmp.Diff(before, h.Tree("/etc")); diff != "" {
				t.Error(diff)
			}
			if _, out, _ := invoke(h, "berth", "status"); !strings.Contains(out, "join: failed at ") {
				t.Error(out)
			}
		})
	}
}

// TestJoinSpeaksOfItself: it ends with the codes of all commands, writes no log, and
// nobody who ran it wants to run provision.
func TestJoinSpeaksOfItself(t *testing.T) {
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(exitcode.ErrInterrupted)
	for name, c := range map[string]struct {
		ctx  context.Context
		code int
	}{
		"failed":  {t.Context(), exitcode.Failed},
		"stopped": {stopped, exitcode.CommandInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			code, stderr := invokeIn(c.ctx, h, "berth", "join", "-f", "/nowhere")
			if r := report.LoadJoin(h); code != c.code || r == nil || r.Failure == nil || !strings.Contains(stderr, "hint: "+r.Failure.Hint) {
				t.Errorf("code %d, %+v: %s", code, r, stderr)
			}
			for _, not := range []string{report.LogPath, "berth provision", "exit code"} {
				if strings.Contains(stderr, not) {
					t.Errorf("%q in\n%s", not, stderr)
				}
			}
		})
	}
}

// TestJoinNeedsRoot: nothing is read or locked for somebody who may change nothing.
func TestJoinNeedsRoot(t *testing.T) {
	var errOut bytes.Buffer
	e := &env{start: time.Now(), err: &errOut, uid: 1000, open: func(string) (host.Host, error) {
		t.Error("the machine was opened")
		return memory.New(), nil
	}}
	if code := e.run(t.Context(), []string{"berth", "join", "-f", ownDocument}); code != exitcode.Failed || !strings.Contains(errOut.String(), "only root") {
		t.Errorf("exit code %d: %s", code, &errOut)
	}
}

// TestJoinAsksTheServerOfTheDocument: a machine that is a node of another cluster learns
// the version of the one that it is to join.
func TestJoinAsksTheServerOfTheDocument(t *testing.T) {
	serve := func(version string) (url, ca string) {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.URL.Path {
			case "/version":
				fmt.Fprintf(w, `{"gitVersion": %q}`, version)
			case "/api/v1/nodes/n1":
				fmt.Fprintf(w, `{"kind": "Node", "apiVersion": "v1", "status": {"nodeInfo": {"kubeletVersion": %q}}}`, version)
			default:
				http.NotFound(w, r)
			}
		}))
		t.Cleanup(s.Close)
		return s.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	}
	is, isCA := serve("v1.36.3")
	other, otherCA := serve("v1.30.1")
	h := memory.New()
	h.Value("/proc/sys/kernel/hostname", "n1\n")
	h.Put("/ca", isCA, 0o644)
	h.Put(kubelet.Kubeconfig, fmt.Sprintf(`{"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority": "/ca"}}],
		"users": [{"name": "u", "user": {"token": "abcdef.0123456789abcdef"}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}`, is), 0o600)
	for _, c := range []struct {
		server, ca string
		want       join.Peers
	}{
		{is, isCA, join.Peers{Server: "v1.36.3", Kubelet: "v1.36.3"}},
		{is + "/", isCA, join.Peers{Server: "v1.36.3", Kubelet: "v1.36.3"}},
		{other, otherCA, join.Peers{Server: "v1.30.1"}},
	} {
		st := &desired.State{}
		st.Add(&desired.File{Path: kubelet.CAFile, Content: desired.Text(c.ca), Mode: 0o644, Life: desired.Managed})
		if err := st.Seal(); err != nil {
			t.Fatal(err)
		}
		got := (&parts{host: h}).peers().Of(t.Context(), &join.Wanted{State: st, Server: c.server})
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.server, d)
		}
	}
}

// TestJoinAsksTheVersionWithItsToken: an API server that takes no requests of strangers says
// its version to who shows the document's token; one that tells anybody is not shown it.
func TestJoinAsksTheVersionWithItsToken(t *testing.T) {
	for name, open := range map[string]bool{"to anybody": true, "to those that it knows": false} {
		t.Run(name, func(t *testing.T) {
			shown := ""
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if shown = r.Header.Get("Authorization"); !open && shown != "Bearer abcdef.0123456789abcdef" {
					w.WriteHeader(http.StatusUnauthorized)
					fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "code": 401}`)
					return
				}
				fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
			}))
			t.Cleanup(s.Close)
			h := memory.New()
			h.Put("/etc/berth/token", "abcdef.0123456789abcdef\n", 0o600)
			ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
			st := &desired.State{}
			st.Add(&desired.File{Path: kubelet.CAFile, Content: desired.Text(ca), Mode: 0o644, Life: desired.Managed},
				&desired.ClientCertificate{NodeName: "n1", Server: s.URL, CA: ca, CAFile: kubelet.CAFile, TokenFile: "/etc/berth/token", Kubeconfig: kubelet.Kubeconfig, CertDir: "/var/lib/kubelet/pki", Timeout: time.Minute})
			if err := st.Seal(); err != nil {
				t.Fatal(err)
			}
			got := (&parts{host: h}).peers().Of(t.Context(), &join.Wanted{State: st, Server: s.URL})
			if got.Server != "v1.36.3" || open != (shown == "") {
				t.Errorf("%+v, shown %q", got, shown)
			}
		})
	}
}

// TestJoinAsksTheVersionWithItsIdentity: so does the first join of a machine that shows the
// API server tokens of its identity instead of a certificate.
func TestJoinAsksTheVersionWithItsIdentity(t *testing.T) {
	h, token, _ := arcMachine(t)
	if err := h.Remove(azureidentity.Path); err != nil { // which the join is going to write
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "code": 401}`)
			return
		}
		fmt.Fprint(w, `{"gitVersion": "v1.36.3"}`)
	}))
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	resources, err := kubelet.Resources(kubelet.Settings{Version: "1.37.0", Hostname: "n1", Cluster: &kubelet.Cluster{
		Server: s.URL, CA: ca,
		Credential: kubelet.Credential{Azure: &desired.AzureIdentity{Kind: desired.AzureArc, ServerID: azureidentity.AKS}, Direct: true, Program: "/berth"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	st := &desired.State{}
	st.Add(resources...)
	if err := st.Seal(); err != nil {
		t.Fatal(err)
	}
	peers := func() join.Peers {
		return (&parts{host: h}).peers().Of(t.Context(), &join.Wanted{State: st, Server: s.URL})
	}
	if got := peers(); got.Server != "v1.36.3" {
		t.Errorf("%+v", got)
	}
	if err := join.Fits("1.37.0", false, peers); err == nil || !strings.Contains(err.Error(), "kubelet 1.37.0 is newer than the API server, which is v1.36.3") {
		t.Error(err)
	}
}
