package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// publishedChecks are the names that AKS Flex Node published for checks, and berth's that answers the same
// question; "" where berth asks it of nobody, since its joins need no such thing.
var publishedChecks = []struct{ published, own string }{
	{"is-privileged-user", "root"}, {"existing-deployment", "earlier-node"}, {"host-os-configuration", "plan"}, {"docker-active", "runtimes"},
	{"swap-active", "swap"}, {"disk-space", "disk"}, {"cgroups", "cgroups"}, {"api-server-reachable", "api-server"},
	{"kubernetes-artifacts", "artifacts"}, {"cri-artifacts", "artifacts"}, {"cni-artifacts", "artifacts"},
	{"host-packages", ""}, {"nspawn-runtime", ""}, {"nvidia-driver", ""}, {"oci-image-reachable", ""}, {"nspawn-machine-provisioning", ""}, {"npd-artifact", ""},
}

// PublishedReport is the published shape of a report. What can't be known has the severity
// unknown, which is berth's own.
type PublishedReport struct {
	Status  string           `json:"status"`
	Checks  []PublishedCheck `json:"checks"`
	Summary struct {
		OK       int `json:"ok"`
		Warnings int `json:"warnings"`
		Errors   int `json:"errors"`
		Unknown  int `json:"unknown"`
	} `json:"summary"`
}

// PublishedCheck is one check of it.
type PublishedCheck struct {
	Name     string `json:"name"`
	Target   string `json:"target"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Ignored  bool   `json:"ignored"`
}

// IgnoredAsPublished are berth's names for those of a list with commas between, which may hold
// either. The error names one that is neither.
func IgnoredAsPublished(list string) ([]string, error) {
	var out []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		at := slices.IndexFunc(publishedChecks, func(c struct{ published, own string }) bool { return c.published == name })
		switch {
		case at >= 0 && publishedChecks[at].own != "":
			out = append(out, publishedChecks[at].own)
		case name != "" && at < 0:
			if UnknownCheck([]string{name}) != "" {
				return nil, fmt.Errorf("%s: there is no such check", name)
			}
			out = append(out, name)
		}
	}
	return out, nil
}

// AsPublished gives a report the published shape and names.
func AsPublished(r Report) PublishedReport {
	out := PublishedReport{Status: r.Status}
	for _, c := range r.Checks {
		name := c.Name
		if at := slices.IndexFunc(publishedChecks, func(f struct{ published, own string }) bool { return f.own == name }); at >= 0 {
			name = publishedChecks[at].published
		}
		message := c.Finding
		if c.Remedy != "" && c.Status != OK {
			message += " (" + c.Remedy + ")"
		}
		out.Checks = append(out.Checks, PublishedCheck{Name: name, Target: "machine", Severity: string(c.Status), Message: message, Ignored: c.Ignored})
	}
	out.Summary.OK, out.Summary.Warnings, out.Summary.Errors, out.Summary.Unknown = r.Summary.OK, r.Summary.Warnings, r.Summary.Errors, r.Summary.Unknown
	return out
}
