package report

import (
	"encoding/json"
	"fmt"
	"path"
	"time"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

// JoinPath is where the result of the last join stands; where the machine keeps no state
// of berth, it is below the run directory.
const JoinPath = paths.StateDir + "/join.json"

// Join is how a join ended. Its JSON keys are part of the interface.
type Join struct {
	Version string    `json:"version"`
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
	// Server and Node are the cluster's API server and what the machine is called there;
	// empty where the document was not read.
	Server string `json:"server,omitempty"`
	Node   string `json:"node,omitempty"`
	// Milestone is how far the machine has come: applied, kubelet, registered or ready.
	Milestone string `json:"milestone,omitempty"`
	// Changes is how many actions were needed; 0 where all was right already.
	Changes int `json:"changes"`
	// Resumed: an earlier run was cut off, and this one went on with it.
	Resumed bool `json:"resumed,omitempty"`
	// Notes are fields of the document that are not, or not wholly, in force, and why;
	// Unhandled are those that this version does not act on.
	Notes     []desired.FieldNote `json:"notes,omitempty"`
	Unhandled []string            `json:"unhandled,omitempty"`
	// Unverified came without a digest.
	Unverified []string `json:"unverified,omitempty"`
	// Left are what others have otherwise and keep, Kept what nobody wants any more and
	// was kept all the same.
	Left []string `json:"left,omitempty"`
	Kept []string `json:"kept,omitempty"`
	// ExitCode is the command's.
	ExitCode int `json:"exitCode"`
	// Failure is why it failed; nil where it did not.
	Failure *JoinFailure `json:"failure,omitempty"`
}

// JoinFailure is a failure with its code.
type JoinFailure struct {
	// Code is the number, Name the name in docs/exit-codes.md.
	Code  int    `json:"code"`
	Name  string `json:"name"`
	Doing string `json:"doing,omitempty"`
	Field string `json:"field,omitempty"`
	Cause string `json:"cause"`
	Hint  string `json:"hint,omitempty"`
}

// Of is the failure as the result has it; nil for none.
func (Join) Of(f Failure) *JoinFailure {
	if f.Cause == "" {
		return nil
	}
	return &JoinFailure{Code: f.Code.Number, Name: f.Code.Name, Doing: f.Doing, Field: f.Field, Cause: f.Cause, Hint: f.Hint}
}

// String is the join in one line.
func (j *Join) String() string {
	at := SystemdTime(j.End)
	if j.Failure != nil {
		return fmt.Sprintf("failed at %s with %s (%d): %s", at, j.Failure.Name, j.Failure.Code, j.Failure.Cause)
	}
	return fmt.Sprintf("%s is %s since %s, a node of %s", j.Node, j.Milestone, at, j.Server)
}

// Save writes the result, whole or not at all.
func (j *Join) Save(h host.Host) error {
	b, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	p := JoinPath
	if _, err := h.Lstat(path.Dir(p)); err != nil {
		p = path.Join(paths.RunDir, path.Base(p))
	}
	if err := host.WriteFile(h, p, append(b, '\n'), host.Attributes{Mode: 0o600}); err != nil {
		return fmt.Errorf("save the result: %w", err)
	}
	return nil
}

// LoadJoin is the result of the last join; nil where there is none.
func LoadJoin(h host.FS) *Join {
	for _, p := range []string{JoinPath, path.Join(paths.RunDir, path.Base(JoinPath))} {
		j := &Join{}
		if b, err := h.ReadFile(p); err == nil && json.Unmarshal(b, j) == nil {
			return j
		}
	}
	return nil
}
