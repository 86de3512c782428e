package desired

import "errors"

// PodNetwork is the configuration of the pod network that the container runtime
// makes of a template: when kubelet tells it the addresses that the cluster gave
// the node, which kubelet does once after each start, and only where there is no
// configuration yet.
type PodNetwork struct {
	Base
	// File is what the runtime makes.
	File string `json:"file"`
	// Template is the file that it makes it of. Parts are the texts between which the
	// addresses stand.
	Template string   `json:"template"`
	Parts    []string `json:"parts"`
	// Unit is kubelet's. Node is its Node, seen with the credential of Kubeconfig.
	Unit       string `json:"unit"`
	Node       string `json:"node"`
	Kubeconfig string `json:"kubeconfig"`
}

// PodNetworkID names a configuration by its file.
func PodNetworkID(file string) ID { return ID("podnetwork:" + file) }

// ID implements Resource.
func (p *PodNetwork) ID() ID { return PodNetworkID(p.File) }

// Kind implements Resource.
func (p *PodNetwork) Kind() string { return "podnetwork" }

// FilePaths implements Resource.
func (p *PodNetwork) FilePaths() []string { return []string{p.File} }

// Validate implements Resource.
func (p *PodNetwork) Validate() error {
	if len(p.Parts) == 0 || p.Unit == "" || p.Node == "" {
		return errors.New("a pod network needs the parts of its template, kubelet's unit and its Node")
	}
	return errors.Join(cleanAbs(p.File), cleanAbs(p.Template), cleanAbs(p.Kubeconfig))
}
