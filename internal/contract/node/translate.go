package node

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/kernel"
	"github.com/berth-dev/berth/internal/component/swap"
	"github.com/berth-dev/berth/internal/desired"
)

// Translate says what the machine must be for a document that passed Decode. The
// state is sealed. The facts have what References named; where that is missing or
// no use the document is refused, with a *DocumentError.
func Translate(doc *Document, facts component.Facts) (*desired.State, error) {
	t := &translation{doc: doc, config: doc.Config, facts: facts, state: &desired.State{Owner: desired.OwnerNode}}
	parts := []func() error{t.azureCluster, t.clusterCA, t.trust, t.kernel, t.swap, t.proxy, t.network, t.containerd, t.kubernetes, t.kubelet, t.egress, t.images}
	for _, part := range parts {
		if err := part(); err != nil {
			return nil, fmt.Errorf("translate NodeConfig: %w", err)
		}
		if err := refusal(t.errs, doc.lines); err != nil {
			return nil, err
		}
	}
	t.account()
	if err := t.state.Seal(); err != nil {
		return nil, t.blamed(err)
	}
	return t.state, nil
}

// translation is one run of Translate. Parts run in the order in which later ones
// come to depend on earlier ones.
type translation struct {
	doc    *Document
	config *v1alpha1.NodeConfig
	facts  component.Facts
	state  *desired.State
	errs   field.ErrorList
	// ca is the cluster's, PEM.
	ca []byte
	// runtime is what containerd needs in place, node what kubelet needs besides its
	// own files.
	runtime, node []desired.ID
}

// add puts resources into the state; at is the field that they come from.
func (t *translation) add(at *field.Path, rs ...desired.Resource) []desired.ID {
	var ids []desired.ID
	for _, r := range rs {
		if r.Order().Field == "" {
			r.Order().Field = at.String()
		}
		ids = append(ids, r.ID())
	}
	t.state.Add(rs...)
	return ids
}

// read is the content of a file that the document names.
func (t *translation) read(at *field.Path, path string) []byte {
	text, ok := t.facts.Files[path]
	if !ok {
		t.errs = append(t.errs, field.NotFound(at, path))
	}
	return text
}

// certificates reads a file of certificates.
func (t *translation) certificates(at *field.Path, path string) []byte {
	text := t.read(at, path)
	if text == nil {
		return nil
	}
	if want := notCertificates(text); want != "" {
		t.errs = append(t.errs, invalid(at, path+": "+want))
	}
	return text
}

// clusterCA is read by kubelet.
func (t *translation) clusterCA() error {
	switch c := t.config.Cluster; {
	case c.CAFile != "":
		t.ca = t.certificates(clusterPath.Child("caFile"), c.CAFile)
	case c.CA != "":
		t.ca = []byte(c.CA)
	case len(t.facts.ClusterCA) == 0:
		t.errs = append(t.errs, invalid(clusterPath.Child("caCertHash"), "the cluster has not been asked for its CA"))
	default:
		t.ca = t.facts.ClusterCA
	}
	return nil
}

// server is the API server's URL with its port.
func server(c *v1alpha1.NodeConfig) string {
	host, port, _ := serverOf(c.Cluster.Server)
	return "https://" + net.JoinHostPort(host, strconv.Itoa(port))
}

func (t *translation) kernel() error {
	config, err := t.kubeletConfig()
	if err != nil {
		return err
	}
	// A machine that leaves gets the values back that were there before kubelet.
	ids := t.add(nodePath, kernel.Resources(kernel.Settings{IPv6: t.facts.IPv6, Kubelet: true})...)
	t.runtime = append(t.runtime, desired.ModuleID("overlay"), desired.ModuleID("br_netfilter"))
	if config["protectKernelDefaults"] == true {
		t.node = append(t.node, ids...)
	}
	return nil
}

// swap takes areas out of use beside which kubelet would not start, unless the document has
// it take them.
func (t *translation) swap() error {
	config, err := t.kubeletConfig()
	if err != nil || config["failSwapOn"] == false {
		return err
	}
	t.node = append(t.node, t.add(nodePath, swap.Off(t.facts.SwapUnits)...)...)
	return nil
}

// images are those that came to the machine in a bundle: pods find them without a
// registry.
func (t *translation) images() error {
	for _, i := range t.facts.Images {
		t.state.Add(&desired.Image{Base: desired.Base{After: []desired.ID{desired.UnitID(containerd.Unit)}},
			Reference: i.Reference, Digest: i.Digest})
	}
	return nil
}

// ClusterDNSField is noted where nobody says which name servers pods have.
const ClusterDNSField = "networking.clusterDNS"

// account tells of what is not, or not wholly, in force.
func (t *translation) account() {
	if len(t.clusterDNS()) == 0 && !t.given("clusterDNS") {
		t.state.Partial = append(t.state.Partial, desired.FieldNote{Path: ClusterDNSField,
			Reason: "neither the document nor the cluster says it: pods resolve names as the machine does, and find no service of the cluster by name"})
	}
	if t.config.Cluster.Location != "" {
		t.state.Unused = append(t.state.Unused, desired.FieldNote{Path: clusterPath.Child("location").String(), Reason: "nothing on the node reads it"})
	}
	for _, name := range notRegistered(t.config.Identity.Arc) {
		t.state.Unhandled = append(t.state.Unhandled, "identity.arc."+name)
	}
	if t.config.Agent.Keep && !t.facts.Agent {
		t.state.Partial = append(t.state.Partial, desired.FieldNote{Path: "agent.keep", Reason: "nothing keeps the node so here: berth join has the agent do that"})
	}
}

// blamed makes a state that can't be a refusal of the document, by the fields that
// its resources come from.
func (t *translation) blamed(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return fmt.Errorf("translate NodeConfig: %w", err)
	}
	for _, e := range joined.Unwrap() {
		at, ok := errors.AsType[*desired.ResourceError](e)
		if !ok {
			return fmt.Errorf("translate NodeConfig: %w", err)
		}
		t.errs = append(t.errs, &field.Error{
			Type: field.ErrorTypeInvalid, Field: at.Field, BadValue: field.OmitValueType{}, Detail: at.Error(),
		})
	}
	return refusal(t.errs, t.doc.lines)
}

// nodeName is kubelet's rule: the name that is given, or the machine's, in lower
// case.
func (t *translation) nodeName() string {
	if t.config.Node.Name != "" {
		return t.config.Node.Name
	}
	return strings.ToLower(strings.TrimSpace(t.facts.Hostname))
}
