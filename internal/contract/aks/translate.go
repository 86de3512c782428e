package aks

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract/aks/decode"
	"github.com/berth-dev/berth/internal/desired"
)

// Translate says what the machine must be for a configuration that passed Decode
// or Validate. The state is sealed; Unused and Unhandled tell of every set field
// that has no part in it. Paths in them, and the fields of resources, are spelled
// as the document spells them. A document whose paths are in each other's way is
// refused with a *DocumentError.
//
// With pre_provision_only the state holds what an image can hold: no cluster, no
// credentials, and a kubelet that is there but not started.
func Translate(doc *Document, facts component.Facts) (*desired.State, error) {
	t := &translation{cfg: doc.Config, facts: facts, state: &desired.State{Owner: desired.OwnerAKS}}
	parts := []func() error{t.kernel, t.ssh, t.message, t.care, t.trust, t.proxy, t.names, t.domain, t.interfaces, t.secondFamily, t.features, t.network, t.isolation, t.containerd, t.kubernetes}
	if t.joins() {
		parts = append(parts, t.sandboxImage, t.gpu, t.privateHosts, t.azure, t.credentialProvider, t.packetFilter, t.localDNS, t.imageUnits)
	}
	for _, part := range append(parts, t.kubelet, t.egress, t.images) {
		if err := part(); err != nil {
			spellErrors(doc, err)
			return nil, fmt.Errorf("translate configuration: %w", err)
		}
	}
	t.account()
	t.respell(doc)
	if err := t.state.Seal(); err != nil {
		return nil, t.refusal(doc, err)
	}
	return t.state, nil
}

// translation is one run of Translate. Parts run in the order in which later
// ones come to depend on earlier ones.
type translation struct {
	cfg   *aksnodeconfigv1.Configuration
	facts component.Facts
	state *desired.State
	// runtime is what containerd needs in place, node what kubelet needs besides
	// its own files.
	runtime, node []desired.ID
	// sandbox is the reference of the image that kubelet waits for; "" for none.
	sandbox string
	// driver is that of the image that installs drivers; "" for none.
	driver string
}

func (t *translation) joins() bool { return !t.cfg.GetPreProvisionOnly() }

// add puts resources into the state; field is the contract field they come from.
func (t *translation) add(field string, rs ...desired.Resource) []desired.ID {
	var ids []desired.ID
	for _, r := range rs {
		if r.Order().Field == "" {
			r.Order().Field = field
		}
		ids = append(ids, r.ID())
	}
	t.state.Add(rs...)
	return ids
}

// unbase64 undoes the contract's encoding of binary fields; blanks and line breaks
// in it are legal. name is the field, for the error.
func unbase64(name, text string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

// budget is a share of the time that the contract gives to the whole of
// provisioning, at most limit. The published chain gives up retrying after
// 13 of 15 minutes.
func (t *translation) budget(fifteenths int, limit time.Duration) time.Duration {
	total := decode.Timeout(int64(t.cfg.GetCseTimeout()))
	return min(total*time.Duration(fifteenths)/15, limit)
}
