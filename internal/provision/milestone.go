package provision

import "fmt"

// Milestone is how far a run has come, or shall come before it is a success.
type Milestone string

// The milestones, in order. Success is said when the milestone that was asked for is
// true, not earlier.
const (
	MilestoneNone Milestone = ""
	// MilestoneImage: an image build (pre_provision_only); the machine is prepared and is no node.
	MilestoneImage Milestone = "image-built"
	// MilestoneApplied: the machine is as the contract says.
	MilestoneApplied Milestone = "applied"
	// MilestoneKubelet: kubelet answers on its health port.
	MilestoneKubelet Milestone = "kubelet"
	// MilestoneRegistered: the Node exists.
	MilestoneRegistered Milestone = "registered"
	// MilestoneReady: its Ready condition is True.
	MilestoneReady Milestone = "ready"
)

// ParseMilestone reads a value of --wait-for.
func ParseMilestone(s string) (Milestone, error) {
	switch v := Milestone(s); v {
	case MilestoneKubelet, MilestoneRegistered, MilestoneReady:
		return v, nil
	}
	return MilestoneNone, fmt.Errorf("%q is not a milestone: kubelet, registered or ready", s)
}
