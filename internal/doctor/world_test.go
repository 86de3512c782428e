package doctor

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/cri"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/host/survey"
)

// world is a machine, its cluster and its document, all well until a test changes them.
type world struct {
	t      *testing.T
	memory *memory.Host
	o      Options
	survey *fakeSurvey
	api    *fakeAPI
	state  *desired.State
	// denied are the paths and units that nobody may see.
	denied []string
	// denial is why; nil is that they are for root alone.
	denial error
	mounts []host.Mount
	// kubeconfig is where kubelet has its own.
	kubeconfig string
	// cmdline is where the kernel tells the command line of the kubelet that runs.
	cmdline string
}

const token = "abcdef.0123456789abcdef"

func newWorld(t *testing.T) *world {
	h := memory.New()
	for path, text := range map[string]string{
		"/proc/sys/kernel/osrelease": "6.1.0-18-amd64\n", "/proc/sys/kernel/hostname": "node-1\n", "/proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n",
		"/proc/meminfo": "MemTotal: 8000000 kB\nMemAvailable: 7000000 kB\n", "/proc/filesystems": "nodev\toverlay\n",
		"/proc/sys/kernel/random/boot_id": "boot\n",
	} {
		h.Value(path, text)
	}
	h.Put("/etc/resolv.conf", "nameserver 192.0.2.53\n", 0o644)
	h.Put("/usr/lib/os-release", "ID=debian\nPRETTY_NAME=\"Debian 12\"\n", 0o644)
	h.Put("/usr/lib/modules/6.1.0-18-amd64/modules.dep", "kernel/net/bridge/br_netfilter.ko.xz: kernel/x.ko\n", 0o644)
	h.Put("/usr/lib/modules/6.1.0-18-amd64/modules.builtin", "kernel/net/netfilter/nf_conntrack.ko\n", 0o644)
	w := &world{t: t, memory: h, survey: healthySurvey(), api: newAPI(t), state: &desired.State{Owner: desired.OwnerNode}, kubeconfig: kubelet.Kubeconfig}
	w.o = Options{
		Survey: w.survey, Env: func(string) string { return "" }, Fetcher: &fakeFetcher{},
		Config:  &v1alpha1.NodeConfig{Cluster: v1alpha1.Cluster{Server: w.api.URL, CAFile: "/ca"}, Components: v1alpha1.Components{Kubernetes: v1alpha1.Kubernetes{Version: "1.36.3"}}},
		Plan:    func(context.Context, *desired.State) (*converge.Plan, error) { return &converge.Plan{}, nil },
		Runtime: func(context.Context) (Runtime, error) { return &fakeRuntime{}, nil },
		Healthz: w.api.health.URL,
	}
	w.o.State = func(context.Context) (*desired.State, error) { return w.state, nil }
	a := w.api.Listener.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort()
	w.add(&desired.Check{Name: desired.CheckAPIServer, Host: a.Addr().String(), Port: int(a.Port()), CA: w.api.ca, Timeout: time.Second})
	w.credential(desired.ClientCertificate{Token: token})
	return w
}

func (w *world) add(r ...desired.Resource) {
	w.t.Helper()
	w.state.Add(r...)
	if err := w.state.Seal(); err != nil {
		w.t.Fatal(err)
	}
}

// credential makes what the document shows to the cluster another one.
func (w *world) credential(c desired.ClientCertificate) {
	w.state.Resources = slices.DeleteFunc(w.state.Resources, func(r desired.Resource) bool { return r.Kind() == "credential" })
	c.NodeName, c.Server, c.CA, c.CAFile, c.Kubeconfig, c.CertDir = "node-1", w.api.URL, w.api.ca, "/ca", kubelet.Kubeconfig, "/pki"
	c.Timeout, c.Field = time.Second, "identity.bootstrapToken"
	w.add(&c)
}

// kubeletConfig is what kubelet reads, with flags after it.
func (w *world) kubeletConfig(text string, flags ...string) {
	w.wants(kubelet.ConfigFile, text)
	w.wants(kubelet.UnitFile, kubeletUnit)
	w.wants(kubelet.FlagsFile, unitfile.Variable("KUBELET_FLAGS", unitfile.Words(flags)))
}

// kubeletUnit reads all that kubelet may read.
const kubeletUnit = "[Service]\nEnvironmentFile=-" + kubelet.FlagsFile +
	"\nExecStart=" + kubeletProgram + " --v=2 --config=" + kubelet.ConfigFile + " --config-dir=" + kubelet.ConfigDir + " $KUBELET_FLAGS\n"

const kubeletProgram = "/usr/local/bin/kubelet"

// wants adds a file to the document.
func (w *world) wants(path, text string) {
	w.add(&desired.File{Path: path, Content: desired.Text(text), Mode: 0o644, Life: desired.Managed})
}

// installed has a kubelet on the machine that reads a configuration, with flags after it.
func (w *world) installed(config string, flags ...string) {
	w.t.Helper()
	w.memory.Put(kubelet.UnitFile, kubeletUnit, 0o644)
	w.memory.Put(kubelet.FlagsFile, unitfile.Variable("KUBELET_FLAGS", unitfile.Words(flags)), 0o600)
	w.memory.Put(kubelet.ConfigFile, config, 0o600)
	w.memory.Put(kubeletProgram, "", 0o755)
	if err := w.memory.DaemonReload(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// started has that kubelet run, with a command line that is another one than its unit's.
func (w *world) started(args ...string) {
	w.t.Helper()
	if err := w.memory.StartUnit(w.t.Context(), kubelet.Unit); err != nil {
		w.t.Fatal(err)
	}
	u, err := w.memory.Unit(w.t.Context(), kubelet.Unit)
	if err != nil || u.MainPID == 0 {
		w.t.Fatalf("%+v, %v", u, err)
	}
	w.cmdline = fmt.Sprintf("/proc/%d/cmdline", u.MainPID)
	w.memory.Value(w.cmdline, strings.Join(append([]string{kubeletProgram}, args...), "\x00")+"\x00")
}

func (w *world) noState(err error) {
	w.o.State = func(context.Context) (*desired.State, error) { return nil, err }
}

// shows makes the machine a node that shows the API server a token: of an identity, or
// somebody else's.
func (w *world) shows(kind desired.AzureKind) {
	w.user("{token: theirs}")
	w.o.Tokens = func(context.Context, *desired.AzureIdentity, *desired.Egress) (desired.Secret, error) {
		return "token", nil
	}
	if kind == "" {
		return
	}
	text, err := azureidentity.Marshal(desired.AzureIdentity{Kind: kind, ServerID: azureidentity.AKS})
	if err != nil {
		w.t.Fatal(err)
	}
	w.memory.Put(azureidentity.Path, string(text), 0o600)
}

// node makes the machine a node with a certificate that is good for a time.
func (w *world) node(left time.Duration) {
	pair := pairOf(w.t, w.memory.Now().Add(-time.Hour), w.memory.Now().Add(left))
	w.memory.Put("/pki/pair.pem", pair, 0o600)
	w.user("{client-certificate: /pki/pair.pem, client-key: /pki/pair.pem}")
}

// user gives kubelet a kubeconfig with a user.
func (w *world) user(user string) {
	w.memory.Put("/ca", w.api.ca, 0o644)
	w.memory.Put(w.kubeconfig, `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "`+w.api.URL+`", certificate-authority: /ca}}]
users: [{name: u, user: `+user+`}]
`, 0o600)
}

// runs has units that run.
func (w *world) runs(units ...string) {
	w.t.Helper()
	for _, u := range units {
		program := "/usr/bin/" + strings.TrimSuffix(u, ".service")
		w.memory.Put("/usr/lib/systemd/system/"+u, "[Service]\nExecStart="+program+"\n", 0o644)
		w.memory.Put(program, "", 0o755)
		if err := w.memory.DaemonReload(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		if err := w.memory.StartUnit(w.t.Context(), u); err != nil {
			w.t.Fatal(err)
		}
	}
}

// check makes one check of this world.
func (w *world) check(name string, when Occasion) Result {
	w.o.Host = &guarded{w.memory, w.denied, cmp.Or(w.denial, error(syscall.EACCES)), w.mounts}
	if when == Node {
		w.o.Config, w.o.State = nil, nil
	}
	for _, c := range all() {
		if c.Name == name {
			ctx, cancel := context.WithTimeout(w.t.Context(), Budget)
			defer cancel()
			return ask(ctx, c, newVisit(ctx, when, w.o))
		}
	}
	w.t.Fatalf("there is no check %s", name)
	return Result{}
}

// guarded is a machine of which something is for others to see.
type guarded struct {
	*memory.Host
	denied []string
	denial error
	mounts []host.Mount
}

func (g *guarded) may(name string) error {
	if slices.ContainsFunc(g.denied, func(d string) bool { return d == name || strings.HasPrefix(name, d+"/") }) {
		return &fs.PathError{Op: "open", Path: name, Err: g.denial}
	}
	return nil
}

func (g *guarded) ReadFile(p string) ([]byte, error) {
	if err := g.may(p); err != nil {
		return nil, err
	}
	return g.Host.ReadFile(p)
}

func (g *guarded) Lstat(p string) (host.Info, error) {
	if err := g.may(p); err != nil {
		return host.Info{}, err
	}
	return g.Host.Lstat(p)
}

func (g *guarded) ReadDir(p string) ([]string, error) {
	if err := g.may(p); err != nil {
		return nil, err
	}
	return g.Host.ReadDir(p)
}

func (g *guarded) Unit(ctx context.Context, name string) (host.UnitStatus, error) {
	if err := g.may(name); err != nil {
		return host.UnitStatus{}, err
	}
	return g.Host.Unit(ctx, name)
}

func (g *guarded) Mounts(ctx context.Context) ([]host.Mount, error) {
	if err := g.may("/proc/self/mountinfo"); err != nil {
		return nil, err
	}
	all, err := g.Host.Mounts(ctx)
	return append(all, g.mounts...), err
}

// fakeSurvey is what the kernel tells.
type fakeSurvey struct {
	space     survey.Space
	addresses []survey.Address
	routes    []survey.Route
	listeners []survey.Listener
	holder    string
	dropping  []string
	err       error
}

func healthySurvey() *fakeSurvey {
	lan := netip.MustParsePrefix("192.0.2.10/24")
	return &fakeSurvey{
		space:     survey.Space{Free: 50 << 30, Total: 100 << 30, FreeFiles: 1 << 20, TotalFiles: 2 << 20},
		addresses: []survey.Address{{Interface: "eth0", Prefix: lan}, {Interface: "cbr0", Prefix: netip.MustParsePrefix("10.244.1.1/24")}},
		routes:    []survey.Route{{Interface: "eth0", To: netip.MustParsePrefix("0.0.0.0/0")}, {Interface: "eth0", To: lan.Masked()}},
	}
}

func (s *fakeSurvey) Space(string) (survey.Space, error)    { return s.space, s.err }
func (s *fakeSurvey) Addresses() ([]survey.Address, error)  { return s.addresses, s.err }
func (s *fakeSurvey) Routes() ([]survey.Route, error)       { return s.routes, s.err }
func (s *fakeSurvey) Listeners() ([]survey.Listener, error) { return s.listeners, s.err }
func (s *fakeSurvey) Holder(uint64) string                  { return s.holder }
func (s *fakeSurvey) Dropping() ([]string, error)           { return s.dropping, s.err }

// fakeFetcher has what its sources say.
type fakeFetcher struct {
	sources []artifact.Reached
	err     error
	version string
}

func (f *fakeFetcher) Reach(context.Context, host.FS, *desired.Artifact) ([]artifact.Reached, error) {
	return f.sources, f.err
}

func (f *fakeFetcher) Version(context.Context, host.Host, string) (string, error) {
	return f.version, nil
}

type fakeRuntime struct {
	network, err error
}

func (r *fakeRuntime) Conditions(context.Context) ([]cri.Condition, error) {
	all := []cri.Condition{{Type: "RuntimeReady", OK: true}, {Type: "NetworkReady", OK: r.network == nil}}
	if r.network != nil {
		all[1].Reason, all[1].Message = "NetworkPluginNotReady", r.network.Error()
	}
	return all, r.err
}

func (*fakeRuntime) Close() {}

// fakeAPI is an API server that knows one token.
type fakeAPI struct {
	*httptest.Server
	health *httptest.Server
	ca     string
	// date is what it says, status its answer to anybody.
	date   func() string
	status int
	// rights are what the token may do; expiration is what its Secret says, "-" where it
	// may not be read.
	rights     []string
	expiration string
	// node is the answer to a watch of the Node.
	node string
}

func newAPI(t *testing.T) *fakeAPI {
	a := &fakeAPI{status: http.StatusOK, rights: []string{"", "nodeclient"}, expiration: "-"}
	a.date = func() string { return time.Now().UTC().Format(http.TimeFormat) }
	a.Server = httptest.NewUnstartedServer(a)
	a.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.StartTLS()
	t.Cleanup(a.Close)
	a.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}))
	a.health = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(a.health.Close)
	return a
}

// ServeHTTP implements http.Handler.
func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if d := a.date(); d != "" {
		w.Header().Set("Date", d)
	} else {
		w.Header()["Date"] = nil
	}
	switch {
	case r.URL.Path == "/version":
		w.WriteHeader(a.status)
	case r.URL.Query().Get("watch") != "":
		_, _ = io.WriteString(w, a.node)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.Header.Get("Authorization") != "Bearer "+token:
		refuse(w, http.StatusUnauthorized, "Unauthorized")
	case strings.HasSuffix(r.URL.Path, "selfsubjectaccessreviews"):
		var asked struct {
			Spec struct {
				ResourceAttributes struct{ Subresource string }
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&asked)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": map[string]any{"allowed": slices.Contains(a.rights, asked.Spec.ResourceAttributes.Subresource)}})
	case a.expiration == "-":
		refuse(w, http.StatusForbidden, "Forbidden")
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Secret", "apiVersion": "v1", "data": map[string]any{"expiration": []byte(a.expiration)}})
	}
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code})
}

// pairOf is a certificate of node-1 and its key, for a time.
func pairOf(t *testing.T, from, to time.Time) string {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:node-1", Organization: []string{"system:nodes"}}, NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) + string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}))
}

var errTest = errors.New("no luck")
