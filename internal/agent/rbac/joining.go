package rbac

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

var objectForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// binding is of a ClusterRole.
type binding struct{ name, role string }

// Joining is what identities of Microsoft Entra ID need to become nodes: each is a user
// by its object id, asks for a kubelet's certificate and has it approved. All else the
// Node itself may do, with that certificate. direct: kubelets show the identity's tokens
// themselves, and it may do what all Nodes together may.
func Joining(objects []string, direct bool) ([]byte, error) {
	const approve = "system:certificates.k8s.io:certificatesigningrequests:"
	var out []object
	for _, id := range sorted(objects) {
		if !objectForm.MatchString(id) {
			return nil, field.Invalid(field.NewPath("object-id"), id, "must be a GUID in lower case: az identity show --query principalId, az ad sp show --query id")
		}
		name := "berth-join-" + id
		bindings := []binding{{name, "system:node-bootstrapper"}, {name + "-approve", approve + "nodeclient"}}
		if direct {
			bindings = []binding{{"berth-direct-" + id, "system:node"}}
		}
		for _, b := range bindings {
			o := clusterBinding(b.name, b.role, "")
			o.Subjects = []subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: id}}
			out = append(out, o)
		}
	}
	text, err := printed(out)
	if err != nil {
		return nil, fmt.Errorf("print bindings: %w", err)
	}
	return text, nil
}
