package provision

import "fmt"

// Stage is how far a run has come, or shall come before it is a success.
type Stage string

// The stages, in order. Success is said when the stage that was asked for is
// true, not earlier.
const (
	StageNone Stage = ""
	// StageImage: an image build (pre_provision_only); the machine is prepared and is no node.
	StageImage Stage = "baked"
	// StageApplied: the machine is as the contract says.
	StageApplied Stage = "applied"
	// StageKubelet: kubelet answers on its health port.
	StageKubelet Stage = "kubelet"
	// StageRegistered: the Node exists.
	StageRegistered Stage = "registered"
	// StageReady: its Ready condition is True.
	StageReady Stage = "ready"
)

// ParseStage reads a value of --wait-for.
func ParseStage(s string) (Stage, error) {
	switch v := Stage(s); v {
	case StageKubelet, StageRegistered, StageReady:
		return v, nil
	}
	return StageNone, fmt.Errorf("%q is not a stage: kubelet, registered or ready", s)
}
