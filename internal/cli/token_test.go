package cli

import (
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/proxy"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

const tenant = "11111111-1111-1111-1111-111111111111"

// arcMachine is a machine with an agent of Azure Arc that gives tokens.
func arcMachine(t *testing.T) (h *memory.Host, token string, requests *int) {
	t.Helper()
	h, requests = memory.New(), new(int)
	claims := fmt.Sprintf(`{"aud":%q,"tid":%q,"exp":%d}`, azureidentity.AKS, tenant, h.Now().Add(time.Hour).Unix())
	token = "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	h.PutOwned("/var/opt/azcmagent/tokens/a.key", "the key", host.Attributes{Mode: 0o600})
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests++
		if r.Header.Get("Authorization") != "Basic the key" {
			w.Header().Set("Www-Authenticate", "Basic realm=/var/opt/azcmagent/tokens/a.key")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"access_token":%q}`, token)
	}))
	t.Cleanup(agent.Close)
	t.Setenv("IDENTITY_ENDPOINT", agent.URL+"/metadata/identity/oauth2/token")
	h.Put(azureidentity.Path, `{"kind":"arc","serverId":"`+azureidentity.AKS+`"}`, 0o600)
	return h, token, requests
}

func TestToken(t *testing.T) {
	h, token, requests := arcMachine(t)
	for _, args := range [][]string{
		{"berth", "token"}, {"berth", "token", "--server-id", strings.ToUpper(azureidentity.AKS)}, {"/usr/local/bin/aks-flex-node", "token", "kubelogin"},
		{"/opt/azure/containers/aks-node-controller", "node", "token"}, {"gardener-node-agent", "node", "token"}, {"aks-flex-node", "node", "token"},
	} {
		code, out, stderr := invoke(h, args...)
		if code != 0 || !strings.Contains(out, token) || !strings.Contains(out, `"apiVersion":"client.authentication.k8s.io/v1"`) || stderr != "" {
			t.Errorf("%q: %d %s %s", args, code, out, stderr)
		}
	}
	if *requests != 2 {
		t.Errorf("%d requests: tokens are not kept", *requests)
	}
	t.Setenv("KUBERNETES_EXEC_INFO", `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"}`)
	if code, out, _ := invoke(h, "berth", "token"); code != 0 || !strings.Contains(out, `"client.authentication.k8s.io/v1beta1"`) {
		t.Errorf("%d %s", code, out)
	}
}

// A machine with a server of its own gets a token without a flag: a default asks for
// nothing.
func TestTokenOfAnotherServer(t *testing.T) {
	h, _, requests := arcMachine(t)
	h.Put(azureidentity.Path, `{"kind":"arc","serverId":"11111111-2222-3333-4444-555555555555"}`, 0o600)
	if _, _, stderr := invoke(h, "aks-flex-node", "token", "kubelogin"); *requests != 2 || strings.Contains(stderr, "--server-id") {
		t.Errorf("%d requests, %s", *requests, stderr)
	}
}

// hidden is a machine whose identity is for root to read.
type hidden struct{ *memory.Host }

func (h hidden) ReadFile(p string) ([]byte, error) {
	if p == azureidentity.Path {
		return nil, &fs.PathError{Op: "open", Path: p, Err: syscall.EACCES}
	}
	return h.Host.ReadFile(p)
}

func TestTokenOfOthers(t *testing.T) {
	h, _, _ := arcMachine(t)
	if code, _, stderr := invoke(hidden{h}, "berth", "token"); code != 1 || !strings.Contains(stderr, "Run it as root") {
		t.Errorf("%d %s", code, stderr)
	}
}

// No other token can be had with it, and what is wrong stands on stderr alone.
func TestTokenRefuses(t *testing.T) {
	const mine = "11111111-2222-3333-4444-555555555555"
	for name, tc := range map[string]struct {
		file, args string
		env        map[string]string
		want       string
	}{
		"another server":         {"", "berth token --server-id https://management.azure.com", nil, "Leave --server-id out"},
		"as published":           {"", "aks-flex-node token kubelogin --server-id " + mine, nil, "Leave --server-id out"},
		"another file":           {"", "berth token --identity /etc/none", nil, "This machine has joined no cluster"},
		"the CLI":                {`{"kind":"azureCLI","serverId":"` + mine + `"}`, "berth token", nil, "for the time of a join alone"},
		"a damaged file":         {`{`, "berth token", nil, "azure-identity.json"},
		"proof of possession":    {"", "aks-flex-node token kubelogin --pop-enabled", nil, "not supported"},
		"a method of another":    {"", "aks-flex-node token kubelogin", map[string]string{"AAD_LOGIN_METHOD": "devicecode"}, "expected msi or spn"},
		"half a principal":       {"", "aks-flex-node token kubelogin", map[string]string{"AAD_LOGIN_METHOD": "spn"}, "tenantId and clientId"},
		"another interface":      {"", "berth token", map[string]string{"KUBERNETES_EXEC_INFO": "{}"}, "KUBERNETES_EXEC_INFO"},
		"an agent that is away":  {"", "berth token", map[string]string{"IDENTITY_ENDPOINT": "http://127.0.0.1:1/metadata/identity/oauth2/token"}, "systemctl status himdsd"},
		"an agent from far away": {"", "berth token", map[string]string{"IDENTITY_ENDPOINT": "http://192.0.2.1/metadata/identity/oauth2/token"}, "IDENTITY_ENDPOINT"},
	} {
		t.Run(name, func(t *testing.T) {
			h, _, requests := arcMachine(t)
			if tc.file != "" {
				h.Put(azureidentity.Path, tc.file, 0o600)
			}
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			var code int
			var out, stderr string
			synctest.Test(t, func(*testing.T) { // an agent that is away is asked again
				code, out, stderr = invoke(h, strings.Fields(tc.args)...)
			})
			if code != 1 || out != "" || !strings.Contains(stderr, tc.want) || *requests != 0 {
				t.Errorf("%d %q %s; %d requests", code, out, stderr, *requests)
			}
		})
	}
}

// noProxy has the environment name none.
func noProxy(t *testing.T) {
	for _, v := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		t.Setenv(v, "")
	}
}

// TestTokenByProxy: whoever runs the plugin without kubelet's environment goes by the proxy
// of the machine's document.
func TestTokenByProxy(t *testing.T) {
	noProxy(t)
	p := newConnects(t)
	h := memory.New()
	h.Put(azureidentity.Path, `{"kind":"servicePrincipal","serverId":"`+azureidentity.AKS+`","tenantId":"`+tenant+`","clientId":"`+tenant+
		`","clientSecret":"s3cret","authority":"https://login.example"}`, 0o600)
	h.Put(proxy.VariablesFile, "# Written by berth.\nHTTPS_PROXY=\""+p.URL+"\"\nNO_PROXY=\"10.0.0.1\"\n", 0o600)
	h.Put("/ca", "", 0o644)
	h.Put(kubelet.Kubeconfig, `{"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority": "/ca"}}],
		"users": [{"name": "u", "user": {"token": "t"}}], "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}`, 0o600)
	for _, command := range [][]string{{"berth", "node", "token"}, {"berth", "doctor"}} {
		p.asked.Store(nil)
		invoke(h, command...)
		if got := p.asked.Load(); got == nil || *got != "login.example:443" {
			t.Errorf("%v: the proxy was asked for %v", command, got)
		}
	}
}

// connects is a proxy that leads to somebody who is not who is asked for.
type connects struct {
	*httptest.Server
	asked atomic.Pointer[string]
}

func newConnects(t *testing.T) *connects {
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.StartTLS()
	t.Cleanup(stranger.Close)
	p := &connects{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Store(&r.Host)
		to, err := net.Dial("tcp", stranger.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer to.Close()
		w.WriteHeader(http.StatusOK)
		from, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer from.Close()
		go func() { _, _ = io.Copy(to, from) }()
		_, _ = io.Copy(from, to)
	}))
	t.Cleanup(p.Close)
	return p
}

// TestTokenOfDamagedProxy: a file that can't be read is no way past the proxy.
func TestTokenOfDamagedProxy(t *testing.T) {
	h := memory.New()
	h.Put(azureidentity.Path, `{"kind":"servicePrincipal","serverId":"`+azureidentity.AKS+`","tenantId":"`+tenant+`","clientId":"`+tenant+
		`","clientSecret":"s3cret","authority":"https://login.example"}`, 0o600)
	noProxy(t)
	h.Put(proxy.VariablesFile, "HTTPS_PROXY=http://u:hunter2@proxy\n", 0o600)
	if code, _, stderr := invoke(h, "berth", "node", "token"); code != 1 || !strings.Contains(stderr, proxy.VariablesFile) || strings.Contains(stderr, "hunter2") {
		t.Errorf("%d %s", code, stderr)
	}
}
