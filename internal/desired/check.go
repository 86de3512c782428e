package desired

import (
	"errors"
	"time"
)

// CheckAPIServer is the check that the API server's name resolves, its port
// accepts and its certificate is signed by CA.
const CheckAPIServer = "apiserver"

// CheckOutbound is the check that the machine has a way out: a command says so.
const CheckOutbound = "outbound"

// CheckGPU is the check that the machine has an NVIDIA GPU.
const CheckGPU = "gpu"

// CheckMount is the check that a file system is mounted at a directory.
const CheckMount = "mount"

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
	// Address is Host's, where name servers need not know it; empty: they say it.
	Address string `json:"address,omitempty"`
	// Command is a program with its arguments that ends with exit code 0 where the
	// condition holds. It is run in place of asking an API server, through Via.
	Command []string `json:"command,omitempty"`
	Via     *Egress  `json:"via,omitempty"`
	// Mount is a directory at which a file system of its own must be mounted; nothing
	// else is asked then.
	Mount string `json:"mount,omitempty"`
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
	if len(c.Command) > 0 && c.Host != "" {
		return errors.New("a check asks a server or runs a command, not both")
	}
	if c.Mount != "" {
		return cleanAbs(c.Mount)
	}
	return nil
}
