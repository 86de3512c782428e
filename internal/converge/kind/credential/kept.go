package credential

import (
	"bytes"
	"slices"

	"github.com/berth-dev/berth/internal/converge/kind"
	"github.com/berth-dev/berth/internal/desired"
)

// kept is the credential that a change on trial replaced, where the way back leads to
// its contract and it still serves.
func kept(v *kind.View, c *desired.ClientCertificate) (kind.Credential, bool) {
	cred, ok := v.Kept[c.ID()][c.Holder()]
	return cred, ok && !v.Offline && v.Issuer.Serves(c, cred)
}

// Replaces implements kind.Keeper. What does not serve any more is not worth keeping.
func (k Kind) Replaces(v *kind.View, r desired.Resource) (holder string, cred *kind.Credential, err error) {
	c := r.(*desired.ClientCertificate)
	if v.Issuer == nil || !slices.ContainsFunc(k.Names(v, c), v.Changes) {
		return "", nil, nil
	}
	if ok, _, err := v.Issuer.Valid(v.Host, c); err != nil || !ok {
		return "", nil, nil //nolint:nilerr // one that can't be read serves nobody
	}
	now, err := v.Issuer.InForce(v.Host, c)
	return c.Holder(), &now, err
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
