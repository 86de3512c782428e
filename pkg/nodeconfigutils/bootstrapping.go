package nodeconfigutils

import (
	"encoding/base64"
	"fmt"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// NodeBootstrapping is what a client gives to Azure with a new machine.
type NodeBootstrapping struct {
	// CustomData is the machine's osProfile.customData, base64.
	CustomData string
	// CSE is the commandToExecute of its CustomScript extension.
	CSE string
}

// GetNodeBootstrapping validates the configuration and returns what a machine needs to become its node.
// The image runs cloud-init; for Flatcar use CustomDataFlatcar.
func GetNodeBootstrapping(cfg *aksnodeconfigv1.Configuration) (*NodeBootstrapping, error) {
	if err := Validate(cfg).ToAggregate(); err != nil {
		return nil, fmt.Errorf("invalid configuration: %w", err)
	}
	data, err := CustomData(cfg)
	if err != nil {
		return nil, err
	}
	return &NodeBootstrapping{CustomData: data, CSE: CSE}, nil
}

// SizeError is custom data that Azure would refuse. Both numbers are base64 characters.
type SizeError struct {
	Size, Limit int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("custom data has %d base64 characters, the limit is %d", e.Size, e.Limit)
}

func encode(document []byte) (string, error) {
	out := base64.StdEncoding.EncodeToString(document)
	if len(out) > Limit {
		return "", &SizeError{Size: len(out), Limit: Limit}
	}
	return out, nil
}
