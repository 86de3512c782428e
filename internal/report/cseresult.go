package report

import (
	"bytes"
	"encoding/json"

	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// Limit is how long a printed result may be, in bytes: the CustomScript
// extension returns only the last 4 KiB of what a command prints.
const Limit = 4000

// Result is provision.json: the published fields, all of them strings, and
// under Berth what the published readers do not know and ignore.
type Result struct {
	nodeconfigutils.CSEStatus
	Berth *Details `json:"Berth,omitempty"`
}

// Details are berth's own fields of provision.json.
type Details struct {
	// Version is berth's version.
	Version string `json:"Version,omitempty"`
	// InstanceID is the cloud's id of the machine that the result is about.
	InstanceID string `json:"InstanceID,omitempty"`
	// Code is the name of ExitCode in the registry.
	Code string `json:"Code,omitempty"`
	// Doing is what was being done when it failed.
	Doing string `json:"Doing,omitempty"`
	// Field is the path of the contract's field behind the failure.
	Field string `json:"Field,omitempty"`
	// Hint is what an operator can do.
	Hint string `json:"Hint,omitempty"`
	// Milestone is how far it came: image-built, applied, kubelet, registered, ready.
	Milestone string `json:"Milestone,omitempty"`
	// Unhandled are paths of set fields that this version does not act on.
	Unhandled []string `json:"Unhandled,omitempty"`
	// Unverified names the downloads that came without a digest.
	Unverified []string `json:"Unverified,omitempty"`
	// Timeline is the file with the times of each action.
	Timeline string `json:"Timeline,omitempty"`
}

func marshal(d Result) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(d)
	return b.Bytes(), err
}

// Decode reads a provision.json, berth's or the published one.
func Decode(b []byte) (Result, error) {
	var d Result
	err := json.Unmarshal(b, &d)
	return d, err
}
