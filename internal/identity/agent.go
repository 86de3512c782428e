package identity

import (
	"time"

	"github.com/berth-dev/berth/internal/converge"
)

// AgentProblem says why a credential does not serve an agent now; "" if it
// does.
func AgentProblem(cred converge.Credential, a Agent, now time.Time) string {
	return pairProblem(cred.Certificate, cred.Key, agentSubject(a), now, 0)
}

// Validity is the time in which a certificate is valid; zero if there is none.
func Validity(certificate []byte) (from, until time.Time) {
	all := parseCertificates(certificate)
	if len(all) == 0 {
		return from, until
	}
	return all[0].NotBefore, all[0].NotAfter
}
