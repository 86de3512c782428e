package desired

import (
	"errors"
	"time"
)

// CheckAPIServer is the check that the API server's name resolves, its port
// accepts and its certificate is signed by CA.
const CheckAPIServer = "apiserver"

// Check is a condition that must hold before the machine is changed.
type Check struct {
	Base
	Name string `json:"name"`
	// Unless is a resource that a machine has only when the condition held before: as
	// long as it has it, the check is needless.
	Unless ID `json:"unless,omitempty"`
	// Host and Port are where an API server answers.
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"`
	CA   string `json:"ca,omitempty"`
	// Timeout is the contract's budget for this check.
	Timeout time.Duration `json:"timeout"`
}

// CheckID names a check.
func CheckID(name string) ID { return ID("check:" + name) }

// ID implements Resource.
func (c *Check) ID() ID { return CheckID(c.Name) }

// Kind implements Resource.
func (c *Check) Kind() string { return "check" }

// Validate implements Resource.
func (c *Check) Validate() error {
	if c.Name == "" || c.Timeout <= 0 {
		return errors.New("a check needs a name and a budget")
	}
	return nil
}
