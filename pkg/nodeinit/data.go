package nodeinit

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Data is what a new machine is told.
type Data struct {
	// ClusterCA is the CA of the cluster's API server, one or more certificates in PEM form.
	ClusterCA []byte
	// BootstrapToken is a token of the cluster (id.secret), or BootstrapTokenPlaceholder.
	BootstrapToken string
	// MachineName is the machine's name in the cluster manager, or MachineNamePlaceholder. The agent's
	// certificate is for it.
	MachineName string
	// Version is the agent's, as its version command prints it. It names the configuration file: another
	// version of the agent brings a configuration of its own.
	Version string
	// Configuration is a NodeAgentConfiguration of nodeagent.config.gardener.cloud/v1alpha1 in YAML.
	Configuration []byte
	// Options are berth's own, for /etc/berth/agent.yaml; nil for none.
	Options []byte
	// Binary says where the agent comes from.
	Binary Binary
}

// Binary is one of: a file of the machine's image, a download, a file of an OCI image.
type Binary struct {
	// Path is the agent in the machine's image. Unless it is called gardener-node-agent, it is called as
	// berth is: agent bootstrap.
	Path string

	// URL is an https or http URL; the machine needs curl.
	URL string
	// SHA256 is the digest of what the URL leads to: 64 hexadecimal digits. A machine runs nothing else.
	SHA256 string

	// Image is a reference of an OCI image. It is pulled with containerd's ctr, with the mirrors and CAs of
	// /etc/containerd/certs.d. With a digest (name@sha256:…) the machine runs nothing else; a tag is
	// believed to the registry.
	Image string
	// PathInImage is the agent in the image.
	PathInImage string
}

// InvalidError is data that no machine could start from.
type InvalidError struct {
	// Errors names each field. Secrets are left out.
	Errors field.ErrorList
}

// Error lists the errors.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("invalid init data: %v", e.Errors.ToAggregate())
}

// Unwrap returns the errors, each a *field.Error.
func (e *InvalidError) Unwrap() []error {
	return slices.Collect(func(yield func(error) bool) {
		for _, f := range e.Errors {
			if !yield(f) {
				return
			}
		}
	})
}

// SizeError is a document that some cloud would refuse. Both numbers are bytes.
type SizeError struct {
	Size, Limit int
}

// Error implements error.
func (e *SizeError) Error() string {
	return fmt.Sprintf("init data has %d bytes, the limit is %d", e.Size, e.Limit)
}
