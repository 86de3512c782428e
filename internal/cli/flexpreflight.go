package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/contract/node"
	"github.com/berth-dev/berth/internal/doctor"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/provision"
)

// flexChecks are the published names of checks, and berth's that answers the same
// question; "" where berth asks it of nobody, since its joins need no such thing.
var flexChecks = []struct{ published, own string }{
	{"is-privileged-user", "root"}, {"existing-deployment", "earlier-node"}, {"host-os-configuration", "plan"}, {"docker-active", "runtimes"},
	{"swap-active", "swap"}, {"disk-space", "disk"}, {"cgroups", "cgroups"}, {"api-server-reachable", "api-server"},
	{"kubernetes-artifacts", "artifacts"}, {"cri-artifacts", "artifacts"}, {"cni-artifacts", "artifacts"},
	{"host-packages", ""}, {"nspawn-runtime", ""}, {"nvidia-driver", ""}, {"oci-image-reachable", ""}, {"nspawn-machine-provisioning", ""}, {"npd-artifact", ""},
}

// flexReport is the published shape of a report. What can't be known has the severity
// unknown, which is berth's own.
type flexReport struct {
	Status  string      `json:"status"`
	Checks  []flexCheck `json:"checks"`
	Summary struct {
		OK       int `json:"ok"`
		Warnings int `json:"warnings"`
		Errors   int `json:"errors"`
		Unknown  int `json:"unknown"`
	} `json:"summary"`
}

type flexCheck struct {
	Name     string `json:"name"`
	Target   string `json:"target"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Ignored  bool   `json:"ignored"`
}

func (e *env) flexPreflight() *cobra.Command {
	var file, output, ignore string
	var strict bool
	c := &cobra.Command{
		Use: "preflight --config FILE", Short: "Find out what keeps this machine from being a node", Args: e.noArgs,
		Long: "Find out what keeps this machine from being the node that a configuration of AKS Flex Node asks for. Nothing is changed.\n" +
			"Exit code 0: nothing, as far as it can be known; 1: an error, or a warning with --fail-on-warnings.",
		RunE: func(c *cobra.Command, _ []string) error {
			names, err := flexIgnored(ignore)
			if err == nil && file == "" {
				err = errors.New("--config FILE is missing")
			}
			if err == nil {
				err = oneOf(output, "text", "json")
			}
			if err != nil {
				return e.usage(c, err)
			}
			return e.runFlexPreflight(c, file, output, names, strict)
		},
	}
	c.Flags().StringVar(&file, "config", "", "read the configuration from `FILE`")
	c.Flags().StringVar(&output, "output", "text", "print as `FORMAT`: text or json")
	c.Flags().StringVar(&ignore, "ignore-preflight-errors", "", "what the checks `NAMES` find does not count: names with commas between, or all")
	c.Flags().BoolVar(&strict, "fail-on-warnings", false, "a warning is no success, either")
	return c
}

func (e *env) runFlexPreflight(c *cobra.Command, file, output string, ignore []string, strict bool) error {
	published, err := provision.ReadDocument(c.Context(), file)
	if err != nil {
		return err
	}
	doc, notes, err := node.FromFlex(published, node.SecretLocation{Inline: true})
	if err != nil {
		return &exitcode.RefusedError{Err: err}
	}
	for _, n := range notes {
		fmt.Fprintf(e.err, "%s: %s\n", n.Path, n.Reason)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	r, err := e.examine(c.Context(), text, ignore)
	if err != nil {
		return err
	}
	if output == "text" {
		err = r.Write(e.out)
	} else {
		err = encode(e.out, output, asPublished(r))
	}
	if err == nil && (r.Summary.Errors > 0 || strict && r.Summary.Warnings > 0) {
		err = told(exitcode.Failed)
	}
	return err
}

// flexIgnored are berth's names for those of a list, which may hold either.
func flexIgnored(list string) ([]string, error) {
	var out []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		at := slices.IndexFunc(flexChecks, func(c struct{ published, own string }) bool { return c.published == name })
		switch {
		case at >= 0 && flexChecks[at].own != "":
			out = append(out, flexChecks[at].own)
		case name != "" && at < 0:
			if doctor.UnknownCheck([]string{name}) != "" {
				return nil, fmt.Errorf("--ignore-preflight-errors %s: there is no such check", name)
			}
			out = append(out, name)
		}
	}
	return out, nil
}

// asPublished gives a report the published shape and names.
func asPublished(r doctor.Report) flexReport {
	out := flexReport{Status: r.Status}
	for _, c := range r.Checks {
		name := c.Name
		if at := slices.IndexFunc(flexChecks, func(f struct{ published, own string }) bool { return f.own == name }); at >= 0 {
			name = flexChecks[at].published
		}
		message := c.Finding
		if c.Remedy != "" && c.Status != doctor.OK {
			message += " (" + c.Remedy + ")"
		}
		out.Checks = append(out.Checks, flexCheck{Name: name, Target: "machine", Severity: string(c.Status), Message: message, Ignored: c.Ignored})
	}
	out.Summary.OK, out.Summary.Warnings, out.Summary.Errors, out.Summary.Unknown = r.Summary.OK, r.Summary.Warnings, r.Summary.Errors, r.Summary.Unknown
	return out
}
