package trial

import (
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// Credential is one that a change on trial replaces: to get another one takes the
// network, which may be what the change broke.
type Credential struct {
	// ID is the resource, Holder what its contract says of it.
	ID     desired.ID `json:"id"`
	Holder string     `json:"holder"`
	// Certificate and Key are PEM.
	Certificate []byte `json:"certificate"`
	Key         []byte `json:"key"`
}

func credentialPath(o desired.Owner) string { return goodPath(o) + ".credential" }

// Credentials are those that are kept of an owner.
func Credentials(h host.FS, o desired.Owner) ([]Credential, error) {
	data, ok, err := ledger.ReadFile(h, credentialPath(o))
	if err != nil {
		return nil, fmt.Errorf("read the kept credential: %w", err)
	}
	var out []Credential
	if !ok || json.Unmarshal(data, &out) != nil {
		return nil, nil // one that is cut off is none: another is asked for
	}
	return out, nil
}

// KeepCredentials keeps an owner's for as long as its change is on trial.
func KeepCredentials(h host.FS, o desired.Owner, all []Credential) error {
	data, err := json.Marshal(all)
	if err == nil {
		err = host.PrivateDir(h, Dir)
	}
	if err == nil {
		err = host.WriteFile(h, credentialPath(o), data, host.Attributes{Mode: 0o600})
	}
	if err != nil {
		return fmt.Errorf("keep the credential: %w", err)
	}
	return nil
}
