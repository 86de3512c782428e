package serve

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Instance is what the metadata service tells a machine about itself: the
// fields of the published answer that nodes read.
type Instance struct {
	Compute Compute `json:"compute"`
	Network Network `json:"network"`
}

// Compute describes the machine.
type Compute struct {
	AzEnvironment     string `json:"azEnvironment"`
	Location          string `json:"location"`
	Name              string `json:"name"`
	OSType            string `json:"osType"`
	PlatformFaultDom  string `json:"platformFaultDomain"`
	ResourceGroupName string `json:"resourceGroupName"`
	ResourceID        string `json:"resourceId"`
	SubscriptionID    string `json:"subscriptionId"`
	Tags              string `json:"tags"` // name:value;name:value
	TagsList          []Tag  `json:"tagsList"`
	VMID              string `json:"vmId"`
	VMScaleSetName    string `json:"vmScaleSetName"`
	VMSize            string `json:"vmSize"`
	Zone              string `json:"zone"`
}

// Tag is one tag of the machine's resource.
type Tag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Network lists the cards, the primary one first.
type Network struct {
	Interface []Interface `json:"interface"`
}

// Interface is one network card. MacAddress is 12 upper-case hex digits
// without separators.
type Interface struct {
	IPv4       Addresses `json:"ipv4"`
	IPv6       Addresses `json:"ipv6"`
	MacAddress string    `json:"macAddress"`
}

// Addresses of one family.
type Addresses struct {
	IPAddress []IPAddress `json:"ipAddress"`
	Subnet    []Subnet    `json:"subnet,omitempty"`
}

// IPAddress pairs a private address with the public one, if there is one.
type IPAddress struct {
	Private string `json:"privateIpAddress"`
	Public  string `json:"publicIpAddress"`
}

// Subnet of a card: an address, and a prefix length as text.
type Subnet struct {
	Address string `json:"address"`
	Prefix  string `json:"prefix"`
}

// NewInstance describes a plausible machine with one card. ip is an address in
// the subnet ip/prefix, vmID a UUID.
func NewInstance(name, vmID, mac, ip, subnet string, prefix int, tags ...Tag) Instance {
	list := make([]string, len(tags))
	for i, t := range tags {
		list[i] = t.Name + ":" + t.Value
	}
	const subscription, group = "00000000-0000-0000-0000-000000000001", "lab"
	return Instance{
		Compute: Compute{
			AzEnvironment: "AzurePublicCloud", Location: "westeurope", Name: name, OSType: "Linux",
			PlatformFaultDom: "0", ResourceGroupName: group, SubscriptionID: subscription,
			ResourceID: "/subscriptions/" + subscription + "/resourceGroups/" + group +
				"/providers/Microsoft.Compute/virtualMachines/" + name,
			Tags: strings.Join(list, ";"), TagsList: append([]Tag{}, tags...), VMID: vmID, VMSize: "Standard_D2s_v5",
		},
		Network: Network{Interface: []Interface{{
			MacAddress: strings.ToUpper(strings.NewReplacer(":", "", "-", "").Replace(mac)),
			IPv4: Addresses{
				IPAddress: []IPAddress{{Private: ip}},
				Subnet:    []Subnet{{Address: subnet, Prefix: strconv.Itoa(prefix)}},
			},
			IPv6: Addresses{IPAddress: []IPAddress{}},
		}}},
	}
}

// part walks the document, "network/interface/0/macAddress" for example.
func (i Instance) part(path string) (any, bool) {
	text, err := json.Marshal(i)
	if err != nil {
		return nil, false
	}
	var at any
	if err := json.Unmarshal(text, &at); err != nil {
		return nil, false
	}
	for step := range strings.SplitSeq(path, "/") {
		if step == "" {
			continue
		}
		if at = child(at, step); at == nil {
			return nil, false
		}
	}
	return at, true
}

func child(at any, name string) any {
	switch at := at.(type) {
	case map[string]any:
		return at[name]
	case []any:
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(at) {
			return at[n]
		}
	}
	return nil
}

func isContainer(part any) bool {
	switch part.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}
