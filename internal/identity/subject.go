package identity

import (
	certificates "k8s.io/api/certificates/v1"
)

const (
	nodeUserPrefix = "system:node:"
	nodesGroup     = "system:nodes"

	// AgentUserPrefix begins the user name of a machine's agent, as published.
	AgentUserPrefix = "gardener.cloud:node-agent:machine:"
	// AgentsGroup is the group of agents, as published.
	AgentsGroup = "gardener.cloud:node-agents"

	// agentSeconds is the validity that an agent asks for: 30 days, as published.
	agentSeconds = 720 * 60 * 60
)

// subject is who a certificate is for, and what is asked of whom.
type subject struct {
	// name is the node's or the machine's.
	name        string
	user, group string
	signer      string
	usages      []certificates.KeyUsage
	// seconds is the validity that is asked for; nil leaves it to the signer.
	seconds *int32
	// prefix begins the name of the request.
	prefix string
	// tokenTarget is where a person puts a token for it.
	tokenTarget string
}

// nodeSubject is as kubelet asks for itself; the controller that approves nodes
// knows no other form.
func nodeSubject(node string) *subject {
	return &subject{name: node, user: nodeUserPrefix + node, group: nodesGroup, prefix: "node-csr-", tokenTarget: "into the contract",
		signer: certificates.KubeAPIServerClientKubeletSignerName,
		usages: []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageClientAuth}}
}

// Agent is whom an agent's certificate is for: its machine, and the group whose rights
// it has.
type Agent struct{ Machine, Group string }

// agentSubject is as the published agent asks for itself.
func agentSubject(a Agent) *subject {
	seconds := int32(agentSeconds)
	return &subject{name: a.Machine, user: AgentUserPrefix + a.Machine, group: a.Group, prefix: "node-agent-csr-", tokenTarget: "in the place of this one on the machine",
		signer: certificates.KubeAPIServerClientSignerName, seconds: &seconds,
		usages: []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageKeyEncipherment, certificates.UsageClientAuth}}
}
