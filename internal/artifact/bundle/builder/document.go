package builder

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"path"

	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/desired"
)

// Wanted is what a document wants that can be bundled.
type Wanted struct {
	Artifacts []*desired.Artifact
	Images    []string
}

func (w *Wanted) named(name string) (*desired.Artifact, bool) {
	for _, a := range w.Artifacts {
		if a.Name == name {
			return a, true
		}
	}
	return nil, false
}

// WantedBy is what a document wants of a bare machine of a platform, whichever one this
// is: the bundle is for others. No document wants nothing.
func WantedBy(c contract.Contract, platform string) (*Wanted, error) {
	if c == nil {
		return &Wanted{}, nil
	}
	facts := component.Facts{Hostname: "localhost", Arch: path.Base(platform), IPv6: true}
	if err := placeholders(c, &facts); err != nil {
		return nil, err
	}
	st, err := c.Translate(facts)
	if err != nil {
		return nil, fmt.Errorf("translate the document: %w", err)
	}
	out, err := wantedOf(st)
	if err != nil {
		return nil, err
	}
	if r := contract.ReferencesOf(c).Arc; r != nil && r.Agent != nil {
		out.Artifacts = append(out.Artifacts, r.Agent)
	}
	return out, nil
}

// placeholders stand for what a document refers to and only its machines have: files of
// certificates, and what Azure or the cluster say. No artifact depends on it.
func placeholders(c contract.Contract, f *component.Facts) error {
	name := f.Hostname
	if config := contract.NodeConfigOf(c); config != nil {
		name = cmp.Or(config.Node.Name, name)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	node := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}}
	der, err := x509.CreateCertificate(rand.Reader, node, node, public, private)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	f.ClusterServer, f.ClusterCA = "https://localhost:443", certificate
	f.Files = map[string][]byte{}
	for _, p := range contract.ReferencesOf(c).Files {
		f.Files[p] = certificate
	}
	return nil
}

func wantedOf(st *desired.State) (*Wanted, error) {
	out := &Wanted{}
	for _, r := range st.Resources {
		if a, ok := r.(*desired.Artifact); ok {
			out.Artifacts = append(out.Artifacts, a)
		}
	}
	f, ok := st.Lookup(desired.FileID(containerd.ConfigFile)).(*desired.File)
	if !ok {
		return out, nil
	}
	image, err := sandboxImage(f.Content.Data())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", containerd.ConfigFile, err)
	}
	if image != "" {
		out.Images = append(out.Images, image)
	}
	return out, nil
}

// sandboxImage is the pause image in a configuration of containerd, of version 2
// or 3; "" leaves it to containerd.
func sandboxImage(config []byte) (string, error) {
	var c struct {
		Plugins struct {
			CRI struct {
				Sandbox string `toml:"sandbox_image"`
			} `toml:"io.containerd.grpc.v1.cri"`
			Images struct {
				Pinned map[string]string `toml:"pinned_images"`
			} `toml:"io.containerd.cri.v1.images"`
		} `toml:"plugins"`
	}
	err := toml.Unmarshal(config, &c)
	return cmp.Or(c.Plugins.CRI.Sandbox, c.Plugins.Images.Pinned["sandbox"]), err
}
