package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/artifact/bundle"
	"github.com/berth-dev/berth/internal/artifact/bundle/builder"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/machine"
	"github.com/berth-dev/berth/internal/provision"
)

// site is a directory in which somebody makes bundles.
type site struct {
	t   *testing.T
	dir string
	h   host.Host
}

func newSite(t *testing.T) *site {
	t.Helper()
	h, err := machine.New("/")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t, t.TempDir(), h}
	write(t, s.path("runc"), "runc")
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	s.key("key", "PRIVATE KEY", x509.MarshalPKCS8PrivateKey, private)
	s.key("pub", "PUBLIC KEY", x509.MarshalPKIXPublicKey, private.Public())
	s.key("other", "PUBLIC KEY", x509.MarshalPKIXPublicKey, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, 32)).Public())
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) key(name, kind string, marshal func(any) ([]byte, error), key any) {
	der, err := marshal(key)
	if err != nil {
		s.t.Fatal(err)
	}
	write(s.t, s.path(name), string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

// run runs a command line in which @ is the site's directory.
func (s *site) run(ctx context.Context, line string) (code int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	e := &env{start: time.Now(), out: &out, err: &errOut, width: 100, uid: os.Geteuid(), open: func(string) (host.Host, error) { return s.h, nil }}
	code = e.run(ctx, strings.Fields("berth bundle "+strings.ReplaceAll(line, "@/", s.dir+"/")))
	return code, out.String(), errOut.String()
}

func (s *site) must(line string) (stdout, stderr string) {
	s.t.Helper()
	code, stdout, stderr := s.run(s.t.Context(), line)
	if code != 0 {
		s.t.Fatalf("%s: code %d: %s", line, code, stderr)
	}
	return stdout, stderr
}

// pauseArchive is an archive of docker save.
func (s *site) pauseArchive() {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	layer := "layer"
	for name, text := range map[string]string{
		"config.json":   fmt.Sprintf(`{"os":"linux","architecture":"amd64","rootfs":{"diff_ids":["sha256:%x"]}}`, sha256.Sum256([]byte(layer))),
		"manifest.json": `[{"Config":"config.json","RepoTags":["registry.example/pause:3.10"],"Layers":["layer.tar"]}]`, "layer.tar": layer,
	} {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o644}); err != nil {
			s.t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		s.t.Fatal(err)
	}
	write(s.t, s.path("pause.tar"), b.String())
}

func TestBundleThere(t *testing.T) {
	s := newSite(t)
	s.pauseArchive()
	const what = "create --platform linux/amd64 --artifact runc@v1.4.3=@/runc --image @/pause.tar --key @/key -o "
	_, said := s.must(what + "@/a.bundle")
	if !strings.Contains(said, "1 artifact and 1 image for linux/amd64") || !strings.Contains(said, "signed by key") {
		t.Error(said)
	}
	s.must(what + "@/b.bundle")
	one, err := os.ReadFile(s.path("a.bundle"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := os.ReadFile(s.path("b.bundle"))
	if err != nil || !bytes.Equal(one, two) || !strings.Contains(said, fmt.Sprintf("%x", sha256.Sum256(one))) {
		t.Errorf("%v: two runs made two files, or the sha256 is another", err)
	}
	text, _ := s.must("inspect @/a.bundle")
	for _, want := range []string{"artifact runc 1.4.3", "image registry.example/pause:3.10", "says to be signed by key"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	var i inspected
	if text, _ = s.must("inspect @/a.bundle -o json"); json.Unmarshal([]byte(text), &i) != nil || len(i.Manifest.Blobs) != 4 || i.KeyID == "" {
		t.Error(text)
	}
	if text, _ = s.must("verify @/a.bundle --key @/other --key @/pub"); !strings.Contains(text, "signed by the trusted key") {
		t.Error(text)
	}
	var r bundle.Report
	if text, _ = s.must("verify @/a.bundle --key @/pub -o json"); json.Unmarshal([]byte(text), &r) != nil || !r.Trusted {
		t.Error(text)
	}
	// A bundle is a source for the next one.
	s.must("create --platform linux/amd64 --image @/a.bundle -o @/c.bundle")
	if text, _ = s.must("inspect @/c.bundle"); !strings.Contains(text, "pause:3.10") || !strings.Contains(text, "not signed") {
		t.Error(text)
	}
	s.nothingLeft()
}

// nothingLeft says that no run left a temporary file.
func (s *site) nothingLeft() {
	s.t.Helper()
	left, err := filepath.Glob(s.path(".berth.*"))
	if err != nil || len(left) > 0 {
		s.t.Errorf("%v: left are %v", err, left)
	}
}

func TestBundleRefuses(t *testing.T) {
	s := newSite(t)
	s.pauseArchive()
	s.must("create --artifact @/runc --key @/key -o @/a.bundle")
	whole, err := os.ReadFile(s.path("a.bundle"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.path("cut.bundle"), string(whole[:len(whole)-1100]))
	write(t, s.path("bad.bundle"), strings.Replace(string(whole), "runc\x00", "RUNC\x00", 1))
	write(t, s.path("bad.json"), `{"version":"v1","cse_timeout":"x"}`)
	for line, c := range map[string]struct {
		code int
		want string
	}{
		"":                                  {1, "a command is missing"},
		"crate":                             {1, "did you mean create?"},
		"create":                            {1, "output"},
		"create -o @/x":                     {1, "nothing to bundle"},
		"create -o @/x @/runc":              {1, "takes no argument"},
		"inspect":                           {1, "wants one FILE"},
		"inspect @/a.bundle b":              {1, "has 2"},
		"inspect @/a.bundle -oz":            {1, "must be text, json or yaml"},
		"verify @/a.bundle -oz":             {1, "must be text, json or yaml"},
		"inspect @/":                        {1, "it is a directory"},
		"inspect @/none":                    {1, "no such file"},
		"inspect /dev/null":                 {1, "no regular file"},
		"inspect @/key":                     {1, "only 119 bytes"},
		"inspect @/pause.tar":               {1, "not a bundle of berth"},
		"inspect @/cut.bundle":              {1, "@/cut.bundle: damaged bundle: blobs/sha256/"},
		"verify @/bad.bundle":               {1, "(artifact runc) was altered"},
		"verify @/a.bundle --key @/other":   {1, "which is not trusted"},
		"verify @/a.bundle --key @/key":     {1, "want PUBLIC KEY"},
		"verify @/a.bundle --key @/none":    {1, "no such file"},
		"verify @/a.bundle --key /dev/zero": {1, "no regular file"},
		"create --artifact @/runc -o @/x --key /dev/zero":                {1, "no regular file"},
		"create --artifact @/none -o @/x":                                {1, "artifact none: stat"},
		"create --artifact @/ -o @/x":                                    {1, "it is a directory"},
		"create --artifact @/runc -o @/":                                 {1, "no regular file"},
		"create --artifact @/runc -o @/no/x":                             {1, "no such file"},
		"create --artifact @/runc -o @/x --key @/pub":                    {1, "want PRIVATE KEY"},
		"create --artifact @/runc -o @/x --key @/none":                   {1, "no such file"},
		"create --artifact @/runc -o @/x --platform linux":               {1, "os/arch"},
		"create --artifact @/runc#sha256=00 -o @/x":                      {1, "want 64 hex digits"},
		"create --artifact @/runc#md5=00 -o @/x":                         {1, "after # comes sha256=HEX"},
		"create --artifact ftp://e.example/x?secret -o @/x":              {1, "want an https, http or oci URL"},
		"create --artifact ftp://u:secret@e.example/x -o @/x":            {1, "ftp://e.example/x: want an https, http or oci URL"},
		"create --artifact x=https://u:secret@e.example:p/x -o @/x":      {1, "want an https, http or oci URL"},
		"create --artifact https://u:secret@e.example/x#md5=0 -o @/x":    {1, "https://e.example/x: after # comes"},
		"create --artifact https://u:secret@e.example -o @/x":            {1, "it has no name"},
		"create --artifact x=https://e.example/x#sha256=secret -o @/x":   {1, "want 64 hex digits"},
		"create --artifact x=oci://u:secret@e.example/x:1 -o @/x":        {1, "credentials do not belong in it"},
		"create --artifact x=oci://u:secret/x@e.example/x:1 -o @/x":      {1, "want an https, http or oci URL"},
		"create --image u:secret@r.example/a:1 -o @/x":                   {1, "is no reference"},
		"create --image oci://u:secret@r.example/a:1 -o @/x":             {1, "is no reference"},
		"create --image oci://r.example/a:1?secret -o @/x":               {1, "is no reference"},
		"create --image oci://u:secret@r.example/a:1=@/pause.tar -o @/x": {1, "is no reference"},
		"create --artifact http://e.example/x -o @/x":                    {1, "plain http needs a digest"},
		"create --artifact a=b=@/runc -o @/x":                            {1, "no such file"},
		"create --artifact https://e.example/a%20b -o @/x":               {1, "a name has letters"},
		"create --artifact https://e.example -o @/x":                     {1, "it has no name"},
		"create --image UP -o @/x":                                       {1, "is no reference"},
		"create --image r.example/a:1=@/runc -o @/x":                     {1, "no tar"},
		"create --image r.example/a:1=@/none -o @/x":                     {1, "no such file"},
		"create --image r.example/a:1=@/ -o @/x":                         {1, "neither an OCI image layout"},
		"create --image @/pause.tar --platform linux/s390x -o @/x":       {1, "not for linux/s390x; it is for linux/amd64"},
		"create -f @/bad.json -o @/x":                                    {3, "cse_timeout"},
		"create -f @/none -o @/x":                                        {1, "no such file"},
	} {
		code, _, stderr := s.run(t.Context(), line)
		if want := strings.ReplaceAll(c.want, "@/", s.dir+"/"); code != c.code || !strings.Contains(stderr, want) || strings.Contains(stderr, "secret") {
			t.Errorf("%s: code %d: %s; want %s", line, code, stderr, want)
		}
	}
	if _, err := os.Stat(s.path("x")); !os.IsNotExist(err) {
		t.Error("a bundle was written")
	}
	s.nothingLeft()
}

func TestBundleClearsUp(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{".berth.a.bundle.1.new", ".berth.a.bundle.17.new", ".berth.a.bundle.new"} {
		write(t, s.path(name), "left by a run that was killed")
	}
	s.must("create --artifact @/runc -o @/a.bundle")
	s.nothingLeft()
}

// TestBundleWithoutFilesOfImages: what a bundle can't hold is named, with the source that
// it has to come from.
func TestBundleWithoutFilesOfImages(t *testing.T) {
	s := newSite(t)
	write(t, s.path("osc.yaml"), "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: OperatingSystemConfig\nspec:\n  files:\n"+
		"  - path: /opt/bin/kubelet\n    content: {imageRef: {image: 'registry.test/kubelet:v1', filePathInImage: /kubelet}}\n")
	_, said := s.must("create --platform linux/amd64 -f @/osc.yaml -o @/a.bundle --artifact runc=@/runc")
	if !strings.Contains(said, "left out: /opt/bin/kubelet: a bundle holds no files out of images") || !strings.Contains(said, "registry.test/kubelet:v1") {
		t.Error(said)
	}
}

// TestBundleOfGPUs: the image of a driver is in the bundle where somebody gives it, else the
// machines have to reach a registry, which is said; of a platform without drivers it is not.
func TestBundleOfGPUs(t *testing.T) {
	s := newSite(t)
	s.pauseArchive()
	text, err := os.ReadFile("../contract/aks/testdata/minimal.json")
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.path("gpu.json"), strings.Replace(string(text), "{", `{"vm_size":"Standard_NV36ads_A10_v5","gpu_config":{"enable_nvidia":true,"config_gpu_driver":true},`+
		`"kube_binary_config":{"pod_infra_container_image_url":"registry.example/pause:3.10"},`, 1))
	const driver = "mcr.microsoft.com/aks/aks-gpu-grid"
	for flags, want := range map[string]bool{
		"--platform linux/amd64": true,
		"--platform linux/amd64 --image " + driver + ":550.1-2026=@/pause.tar":                         false,
		"--platform linux/amd64 --image mcr.microsoft.com/aks/aks-gpu-grid-v20:550.1-2026=@/pause.tar": true,
		"--platform linux/arm64": false,
	} {
		line := "create " + flags + " -f @/gpu.json -o @/a.bundle --artifact kubernetes=@/runc"
		if strings.Contains(flags, "amd64") {
			line += " --image registry.example/pause:3.10=@/pause.tar"
		}
		code, _, said := s.run(t.Context(), line)
		if code != 0 && strings.Contains(flags, "amd64") {
			t.Errorf("%s: code %d: %s", flags, code, said)
		}
		if got := strings.Contains(said, "left out: the driver of GPUs: /opt/azure/components.json") && strings.Contains(said, "--image "+driver+":VERSION"); got != want {
			t.Errorf("%s: it is said %v: %s", flags, got, said)
		}
	}
}

func TestBundleOfADocument(t *testing.T) {
	s := newSite(t)
	s.pauseArchive()
	c, err := provision.ReadContract(t.Context(), "../contract/aks/testdata/full.json")
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := builder.WantedBy(c, "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"mcr.microsoft.com/oss/kubernetes/pause:3.10"}, wanted.Images); d != "" {
		t.Error(d)
	}
	line := "create --platform linux/amd64 -f ../contract/aks/testdata/full.json -o @/a.bundle --image mcr.microsoft.com/oss/kubernetes/pause:3.10=@/pause.tar"
	for _, a := range wanted.Artifacts {
		if len(a.URLs) > 0 {
			line += " --artifact " + a.Name + "=@/runc"
		}
	}
	if _, said := s.must(line); !strings.Contains(said, "left out: localdns: the document gives no URL") {
		t.Error(said)
	}
	text, _ := s.must("inspect @/a.bundle")
	for _, a := range wanted.Artifacts {
		for _, u := range a.URLs {
			if u, _, _ = strings.Cut(u, "#"); !strings.Contains(text, "\n  "+u+"\n") {
				t.Errorf("no %s in %s", u, text)
			}
		}
	}
}

// TestBundleOfANodeConfig: what a document leaves to files of the node, to the cluster or to
// Azure need not be there where its bundle is made.
func TestBundleOfANodeConfig(t *testing.T) {
	const head, tail = "apiVersion: berth.dev/v1alpha1\nkind: NodeConfig\n", "\ncomponents: {kubernetes: {version: 1.36.3}}\n"
	for name, text := range map[string]string{
		"files":     "cluster: {server: 'https://api.example:6443', caFile: /nowhere/ca.pem}\nidentity: {clientCertificate: {certFile: /nowhere/client.pem, keyFile: /nowhere/client.key}}\ntrust: {caFiles: [/nowhere/own.pem]}",
		"discovery": "cluster: {server: 'https://api.example:6443', caCertHash: 'sha256:" + strings.Repeat("ab", 32) + "'}\nidentity: {bootstrapToken: {tokenFile: /nowhere/token}}",
		"Azure":     "cluster: {resourceId: /subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/a/providers/Microsoft.ContainerService/managedClusters/one, location: westeurope}\nidentity: {managedIdentity: {}}",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "node.yaml")
			if err := os.WriteFile(file, []byte(head+text+tail), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := provision.ReadContract(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			wanted, err := builder.WantedBy(c, "linux/amd64")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(wanted.Artifacts, func(a *desired.Artifact) bool { return a.Name == "kubernetes" }) {
				t.Errorf("kubernetes is not among %d artifacts", len(wanted.Artifacts))
			}
		})
	}
}

func TestPagesOfGroups(t *testing.T) {
	root := (&env{}).berth()
	for _, group := range root.Commands() {
		for _, c := range group.Commands() {
			if group.Hidden || c.Hidden {
				continue
			}
			name := "../../docs/commands/" + group.Name() + "-" + c.Name() + ".md"
			got := page(c)
			if *update {
				write(t, name, got)
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("%s is stale (-file +now):\n%s", name, d)
			}
		}
	}
}
