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
}
