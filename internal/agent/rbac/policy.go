package rbac

import (
	"fmt"
	"strings"
)

// nodePolicy holds an agent to its own Node, and there to what it has business
// with: a Node's spec is none, for it has the taints; of the labels only those that
// agents set, for the scheduler goes by them.
func nodePolicy(o Options) []object {
	return policy(o.Name+"-nodes", policySpec{
		FailurePolicy:    "Fail",
		MatchConstraints: matching(resourceRule{[]string{""}, []string{"v1"}, []string{"UPDATE"}, []string{"nodes", "nodes/status"}}),
		MatchConditions:  ofGroup(o.Group),
		Variables: []named{
			machine,
			{"node", "object.metadata.name"},
			{"before", "oldObject.metadata.?labels.orValue({})"},
			{"after", "object.metadata.?labels.orValue({})"},
		},
		Validations: []constraint{
			denied(own, "a node agent writes the Node of its own machine only"),
			denied("object.spec == oldObject.spec", "a node agent does not change a Node's spec"),
			denied(fmt.Sprintf("variables.after.all(k, k in %[1]s || variables.before[?k] == optional.of(variables.after[k])) && "+
				"variables.before.all(k, k in %[1]s || k in variables.after)", list(labels...)),
				"of a Node's labels, a node agent changes "+strings.Join(labels, ", ")+" only"),
		},
	})
}

// labels are those that an agent sets.
var labels = []string{"node-role.kubernetes.io/worker", "topology.kubernetes.io/zone", "worker.gardener.cloud/kubernetes-version"}

// leasePolicy holds an agent to the Lease of its Node, and to those with which the
// agents of its pool take turns.
func leasePolicy(o Options) []object {
	return policy(o.Name+"-leases", policySpec{
		FailurePolicy:    "Fail",
		MatchConstraints: matching(resourceRule{[]string{"coordination.k8s.io"}, []string{"*"}, []string{"CREATE", "UPDATE"}, []string{"leases"}}),
		MatchConditions:  ofGroup(o.Group),
		Variables: []named{
			machine,
			{"node", fmt.Sprintf("object.metadata.name.startsWith('%[1]s') ? object.metadata.name.substring(%[2]d) : ''", leasePrefix, len(leasePrefix))},
		},
		Validations: []constraint{
			denied(turn(o.Secrets)+" || variables.node != '' && ("+own+")",
				"a node agent writes its own Lease and those of its pool only"),
		},
	})
}

// turn: where several agents may work at a time, the second Lease and those after
// it have a number behind the name.
func turn(secrets []string) string {
	return list(secrets...) + ".exists(s, object.metadata.name == s || " +
		"object.metadata.name.startsWith(s + '-') && object.metadata.name.substring(size(s) + 1).matches('^[0-9]{1,3}$'))"
}

// machine is the one in the user's name. It has no name where the certificate is
// for something else.
var machine = named{"machine", fmt.Sprintf("request.userInfo.username.startsWith('%[1]s') ? request.userInfo.username.substring(%[2]d) : ''", userPrefix, len(userPrefix))}

// own: a Node has its machine's name. For one that has not, the cluster grants the
// machine's user the verb own on it.
const own = "variables.node == variables.machine || authorizer.group('').resource('nodes').name(variables.node).check('own').allowed()"

func matching(r resourceRule) matchConstraints { return matchConstraints{[]resourceRule{r}} }

func ofGroup(group string) []named {
	return []named{{"node-agents", "'" + group + "' in request.userInfo.groups"}}
}

func denied(unless, message string) constraint { return constraint{unless, message, "Forbidden"} }

// list is a list of names in an expression; none of them needs an escape.
func list(names ...string) string { return "['" + strings.Join(names, "', '") + "']" }
