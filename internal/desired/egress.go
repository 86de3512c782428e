package desired

// Egress is how a machine reaches servers outside: in force from the first byte,
// before any file of the machine says so.
type Egress struct {
	// HTTPProxy and HTTPSProxy are URLs; they may hold a password.
	HTTPProxy  Secret `json:"httpProxy,omitempty"`
	HTTPSProxy Secret `json:"httpsProxy,omitempty"`
	// NoProxy are names, domains (".example"), addresses and CIDRs that are reached
	// directly.
	NoProxy []string `json:"noProxy,omitempty"`
	// CAs are PEM certificates that are trusted besides the machine's own.
	CAs []string `json:"cas,omitempty"`
	// Identity is who the machine is to registries that want to know; nil is its
	// only managed identity, to the registries of the public clouds.
	Identity *ManagedIdentity `json:"identity,omitempty"`
}

// ManagedIdentity is one of Azure's identities of this machine.
type ManagedIdentity struct {
	// ClientID chooses one of several user-assigned identities; "" is the only one.
	ClientID string `json:"clientID,omitempty"`
	// TenantID is the identity's; "" leaves it to the registry.
	TenantID string `json:"tenantID,omitempty"`
	// Suffixes end the names of registries that may see its token besides those of
	// the public clouds, with their dot: ".azurecr.example".
	Suffixes []string `json:"suffixes,omitempty"`
}
