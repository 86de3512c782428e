package node

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/contract/value"
)

// node is read by kubelet, but where a rule says otherwise.
func (v *validation) node(n *v1alpha1.Node) {
	if n.Name != "" {
		v.expect(nodePath.Child("name"), n.Name, value.NodeName(n.Name))
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		v.expect(nodePath.Child("labels").Key(key), n.Labels[key], value.LabelKey(key))
		v.expect(nodePath.Child("labels").Key(key), n.Labels[key], value.LabelValue(n.Labels[key]))
	}
	if value, ok := n.Labels[unmanaged]; ok && value != "false" && onAKS(&v.config.Cluster) { // Azure's cloud controller
		v.expect(nodePath.Child("labels").Key(unmanaged), value, "expected false, which berth sets: of a machine that is none of its own Azure deletes the Node otherwise")
	}
	v.taints(n.Taints)
	v.drain(nodePath.Child("drain"), n.Drain)
	if n.MaxPods < 0 {
		v.refuse(nodePath.Child("maxPods"), "expected a number above 0")
	}
	if n.NodeIP != "" && !families(strings.Split(n.NodeIP, ","), family) {
		v.expect(nodePath.Child("nodeIP"), n.NodeIP, "expected one IP address, or one of IPv4 and one of IPv6 with a comma between")
	}
	v.reserved(nodePath.Child("kubeReserved"), n.KubeReserved)
	v.reserved(nodePath.Child("systemReserved"), n.SystemReserved)
	v.kubeletConfig(nodePath.Child("kubeletConfig"), n.KubeletConfig)
}

func (v *validation) taints(list []v1alpha1.Taint) {
	seen := map[string]bool{}
	for i, t := range list {
		at := nodePath.Child("taints").Index(i)
		if v.required(at.Child("key"), t.Key) {
			v.expect(at.Child("key"), t.Key, value.QualifiedName(t.Key))
		}
		v.expect(at.Child("value"), t.Value, value.LabelValue(t.Value))
		v.supported(at.Child("effect"), string(t.Effect), string(v1alpha1.NoSchedule), string(v1alpha1.PreferNoSchedule), string(v1alpha1.NoExecute))
		id := fmt.Sprintf("%s:%s", t.Key, t.Effect)
		if seen[id] {
			v.errs = append(v.errs, field.Duplicate(at, id))
		}
		seen[id] = true
	}
}

// reservable are the resources that can be (pkg/kubelet/cm, `parseResourceList`).
var reservable = []string{"cpu", "memory", "ephemeral-storage", "pid"}

func (v *validation) reserved(at *field.Path, by map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if !slices.Contains(reservable, name) {
			v.errs = append(v.errs, field.NotSupported(at.Key(name), name, reservable))
		}
		v.expect(at.Key(name), by[name], value.NotNegative(by[name]))
	}
}

// drain is read by berth.
func (v *validation) drain(at *field.Path, d *v1alpha1.Drain) {
	if d == nil || d.Timeout == "" {
		return
	}
	if t, err := time.ParseDuration(d.Timeout); err != nil || t <= 0 {
		v.expect(at.Child("timeout"), d.Timeout, "expected a time above 0, as 90s or 10m")
	}
}

// kubeletConfig: the rest of it is kubelet's alone, and depends on its version.
func (v *validation) kubeletConfig(at *field.Path, text json.RawMessage) {
	var given map[string]any
	if len(text) == 0 || json.Unmarshal(text, &given) != nil {
		return
	}
	for name, want := range map[string]string{"apiVersion": kubeletAPIVersion, "kind": kubeletKind} {
		if got, ok := given[name]; ok && got != want {
			v.errs = append(v.errs, field.NotSupported(at.Child(name), fmt.Sprint(got), []string{want}))
		}
	}
	if given["registerNode"] == false {
		v.refuse(at.Child("registerNode"), "a machine that does not register joins no cluster")
	}
	if d, ok := given["cgroupDriver"]; ok && d != systemdDriver && d != cgroupfsDriver {
		v.errs = append(v.errs, field.NotSupported(at.Child("cgroupDriver"), fmt.Sprint(d), []string{systemdDriver, cgroupfsDriver}))
	}
}

// The words of kubelet's configuration.
const (
	kubeletAPIVersion = "kubelet.config.k8s.io/v1beta1"
	kubeletKind       = "KubeletConfiguration"
	systemdDriver     = "systemd"
	cgroupfsDriver    = "cgroupfs"
)

// networking is read by kubelet (name servers), the CNI plugins bridge and
// host-local (addresses) and the resolvers of pods (domain).
func (v *validation) networking(n *v1alpha1.Networking) {
	v.supported(networkPath.Child("mode"), string(n.Mode), string(v1alpha1.NetworkCluster), string(v1alpha1.NetworkBridge))
	at := networkPath.Child("podCIDRs")
	switch {
	case len(n.PodCIDRs) > 0 && n.Mode != v1alpha1.NetworkBridge:
		v.refuse(at, "only mode bridge gives pods addresses of the document")
	case len(n.PodCIDRs) > 0 && !families(n.PodCIDRs, networkFamily):
		v.refuse(at, "expected one network in CIDR form, e.g. 10.1.2.0/24, or one of IPv4 and one of IPv6")
	}
	for i, server := range n.ClusterDNS {
		if _, ok := family(server); !ok {
			v.expect(networkPath.Child("clusterDNS").Index(i), server, "expected an IP address")
		}
	}
	// The resolver of libc reads three (MAXNS), and kubelet leaves out the rest.
	if len(n.ClusterDNS) > 3 {
		v.errs = append(v.errs, field.TooMany(networkPath.Child("clusterDNS"), len(n.ClusterDNS), 3))
	}
	if len(content.IsDNS1123Subdomain(strings.TrimSuffix(n.ClusterDomain, "."))) > 0 {
		v.expect(networkPath.Child("clusterDomain"), n.ClusterDomain, "expected a DNS name")
	}
}

// families says whether a list has one item, or one of each family.
func families(list []string, of func(string) (four, ok bool)) bool {
	seen := map[bool]bool{}
	for _, item := range list {
		four, ok := of(item)
		if !ok || seen[four] {
			return false
		}
		seen[four] = true
	}
	return true
}

func family(address string) (four, ok bool) {
	a, err := netip.ParseAddr(address)
	return a.Is4() || a.Is4In6(), err == nil && a.Zone() == ""
}

func networkFamily(cidr string) (four, ok bool) {
	p, err := netip.ParsePrefix(cidr)
	return p.Addr().Is4(), err == nil && p == p.Masked()
}
