package join

import (
	"errors"
	"testing"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A machine that is to show tokens alone is asked for what it gets them with, until it is a
// node: a secret may go for a while then.
func TestLacksProof(t *testing.T) {
	none := errors.New("no secret")
	lacks := func(a *desired.AzureIdentity) error {
		if a.Kind != desired.AzureServicePrincipal {
			t.Errorf("%+v", a)
		}
		return none
	}
	text, err := azureidentity.Marshal(desired.AzureIdentity{Kind: desired.AzureServicePrincipal, TenantID: "11111111-1111-1111-1111-111111111111", ClientID: "22222222-2222-2222-2222-222222222222", ServerID: azureidentity.AKS, Authority: "https://login.example", ClientSecretFile: "/secret"})
	if err != nil {
		t.Fatal(err)
	}
	identity := &desired.File{Path: azureidentity.Path, Content: desired.SecretBytes(text), Mode: 0o600, Life: desired.Managed}
	certificate := &desired.ClientCertificate{Kubeconfig: kubelet.Kubeconfig}
	node := memory.New()
	node.Put(kubelet.Kubeconfig, "{}", 0o600)
	for name, c := range map[string]struct {
		h    *memory.Host
		has  []desired.Resource
		want error
	}{
		"tokens":           {memory.New(), []desired.Resource{identity}, none},
		"a node":           {node, []desired.Resource{identity}, nil},
		"a certificate":    {memory.New(), []desired.Resource{identity, certificate}, nil},
		"no Azure":         {memory.New(), nil, nil},
		"something broken": {memory.New(), []desired.Resource{&desired.File{Path: azureidentity.Path, Content: desired.Text("{"), Life: desired.Managed}}, errors.ErrUnsupported},
	} {
		st := &desired.State{}
		st.Add(c.has...)
		err := LacksProof(c.h, st, lacks)
		if broken := errors.Is(c.want, errors.ErrUnsupported); broken && (err == nil || errors.Is(err, none)) || !broken && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
