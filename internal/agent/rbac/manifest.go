package rbac

import (
	"bytes"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"
)

// Manifest is what kubectl apply takes. The policies come first: nobody may write
// before they are there. The error is a field.ErrorList's.
func Manifest(o Options) ([]byte, error) {
	o.complete()
	if err := o.validate().ToAggregate(); err != nil {
		return nil, err
	}
	return printed(o.objects())
}

// printed is a text of several documents.
func printed(objects []object) ([]byte, error) {
	var out bytes.Buffer
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("print %s %s: %w", object.Kind, object.Metadata.Name, err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes(), nil
}

func (o Options) objects() []object {
	return slices.Concat(
		nodePolicy(o), leasePolicy(o),
		[]object{clusterRole(o.Name, requests, nodes, nodeStatus), clusterBinding(o.Name, o.Name, o.Group)},
		role(namespace, o.Name, o.Group, leases, secrets(slices.Concat(o.Secrets, o.Others))),
		role("default", o.Name, o.Group, events),
		bootstrap(o),
	)
}

var (
	// requests: for the next certificate; whoever approves looks at what is asked for.
	requests = rule{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get", "list", "watch"}}
	// nodes are for all to read: an agent does not know its own by name until kubelet
	// has made it. Writes are the policy's.
	nodes      = rule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch"}}
	nodeStatus = rule{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}}
	leases     = rule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "list", "update", "watch"}}
	// events about a Node are in the namespace default.
	events = rule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}}
)

// secrets are read by name: a list or watch with a field selector for one of them
// is allowed, too.
func secrets(names []string) rule {
	return rule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: sorted(names), Verbs: []string{"get", "list", "watch"}}
}

// bootstrap lets tokens ask for certificates, and has the cluster approve those of
// kubelets.
func bootstrap(o Options) []object {
	const approve = "system:certificates.k8s.io:certificatesigningrequests:"
	return []object{
		clusterBinding(o.Name+"-bootstrap", "system:node-bootstrapper", o.BootstrapGroup),
		clusterBinding(o.Name+"-kubelet-first", approve+"nodeclient", o.BootstrapGroup),
		clusterBinding(o.Name+"-kubelet-renewal", approve+"selfnodeclient", "system:nodes"),
	}
}
