package credential

import (
	"bytes"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
)

// kept is the credential that a change on trial replaced, where the way back leads to
// its contract and it still serves.
func kept(v *kind.View, c *desired.ClientCertificate) (kind.Credential, bool) {
	cred, ok := v.Kept[c.ID()][c.Holder()]
	return cred, ok && !v.Offline && v.Issuer.Serves(c, cred)
}

// inForce says whether the machine has a credential. One that is valid may be another
// cluster's: a run that was cut off has given some of its files their names.
func inForce(v *kind.View, c *desired.ClientCertificate, cred kind.Credential) bool {
	now, err := v.Issuer.InForce(v.Host, c)
	return err == nil && same(now.Certificate, cred.Certificate) && same(now.Key, cred.Key)
}

// comeBack plans that a credential is in force again.
func comeBack(v *kind.View, t *kind.Task, c *desired.ClientCertificate, cred kind.Credential) error {
	if err := v.ClaimLive(t, string(c.ID()), c.Holder(), "", kind.Equal); err != nil {
		return err
	}
	t.Act(kind.VerbRestore, "a change that is taken back replaced it", kind.DisruptNone)
	return enter(v, t, c, cred)
}

func same(a, b []byte) bool { return bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b)) }
