package join

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// LacksProof says what a machine that is no node yet has not, and kubelet would ask for its
// tokens with. Where kubelet has a certificate instead, the plan says so.
func LacksProof(h host.FS, st *desired.State, lacks func(*desired.AzureIdentity) error) error {
	f, ok := st.Lookup(desired.FileID(azureidentity.Path)).(*desired.File)
	if _, certified := st.Lookup(desired.ClientCertificateID(kubelet.Kubeconfig)).(*desired.ClientCertificate); !ok || certified {
		return nil
	}
	if _, err := h.Lstat(kubelet.Kubeconfig); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	a, err := azureidentity.Parse(f.Content.Data())
	if err != nil {
		return fmt.Errorf("read the machine's identity: %w", err)
	}
	return lacks(&a)
}
