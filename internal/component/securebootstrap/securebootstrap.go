// Package securebootstrap has a program of the cloud's own obtain kubelet's first
// certificate: it proves with a document that the cloud signs for this virtual machine
// which one it is, and nobody hands out a token.
package securebootstrap

import (
	"cmp"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/azurejson"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/unitfile"
	"github.com/berth-dev/berth/internal/desired"
)

// Names and paths, as published.
const (
	Unit     = "secure-tls-bootstrap.service"
	unitFile = "/etc/systemd/system/" + Unit
	dropIn   = unitFile + ".d/10-securetlsbootstrap.conf"
	settings = "/etc/default/secure-tls-bootstrap"
	program  = "/opt/bin/aks-secure-tls-bootstrap-client"
	logDir   = "azure/aks" // below /var/log; a unit makes it
	log      = "/var/log/" + logDir + "/secure-tls-bootstrap.log"

	// Artifact is the name of the program as something that may be fetched.
	Artifact = "secure-tls-bootstrap-client"
)

// Settings are what differs from node to node.
type Settings struct {
	// Server is the API server's name, Resource the application that its tokens are for;
	// empty: that of every AKS cluster.
	Server, Resource string
	// ClientID is the managed identity that asks; empty: that of the machine.
	ClientID string
	// URL is an archive of the program; empty: the image has it.
	URL string
	// Timeouts are Go durations by the name of the program's flag, without dashes.
	Timeouts map[string]string
	// Environment is a file that tells of the endpoints of another cloud; may be empty.
	Environment string
	// Timeout bounds the whole; systemd itself would wait for ever.
	Timeout time.Duration
	// After is what comes before the program runs.
	After []desired.ID
}

// timeouts are the program's flags, in the published order.
var timeouts = []string{"validate-kubeconfig-timeout", "get-access-token-timeout", "get-instance-data-timeout",
	"get-nonce-timeout", "get-attested-data-timeout", "get-credential-timeout"}

// Resources are the program, what it is told, and the service that runs it ahead of
// kubelet.
func Resources(s Settings) []desired.Resource {
	client := &desired.Artifact{Name: Artifact, Files: []desired.ArtifactFile{{Path: program, Mode: 0o755}}}
	if s.URL != "" {
		client.URLs, client.Files[0].Member = []string{s.URL}, "aks-secure-tls-bootstrap-client"
	}
	files := []desired.Resource{
		client,
		&desired.File{Path: settings, Content: desired.Text(s.environment()), Mode: 0o600, Life: desired.Managed},
		&desired.File{Path: unitFile, Content: desired.Text(s.service()), Mode: 0o644, Life: desired.Managed},
		&desired.File{Path: dropIn, Content: desired.Text(dropInText()), Mode: 0o600, Life: desired.Managed},
	}
	u := &desired.Unit{Name: Unit, Enablement: desired.Enabled, Activation: desired.Started, Triggers: []string{settings, program}}
	u.After = append(u.After, s.After...)
	for _, r := range files {
		u.After = append(u.After, r.ID())
	}
	return append(files, u)
}

func (s Settings) environment() string {
	text := unitfile.Variable("BOOTSTRAP_FLAGS", unitfile.Words(s.flags()))
	if s.Environment != "" {
		text += unitfile.Variable("AZURE_ENVIRONMENT_FILEPATH", s.Environment)
	}
	return text
}

func (s Settings) flags() []string {
	out := []string{"--aad-resource=" + cmp.Or(s.Resource, azureidentity.AKS), "--apiserver-fqdn=" + s.Server, "--cloud-provider-config=" + azurejson.Path}
	if s.ClientID != "" {
		out = append(out, "--user-assigned-identity-id="+s.ClientID)
	}
	for _, name := range timeouts {
		if value := s.Timeouts[name]; value != "" {
			out = append(out, "--"+name+"="+value)
		}
	}
	return out
}

func (s Settings) service() string {
	return unitfile.Text(
		unitfile.In("Unit", "Description", "AKS Secure TLS Bootstrap Client", "ConditionPathExists", program,
			"Wants", "network-online.target", "After", "network-online.target"),
		unitfile.In("Service", "Type", "oneshot", "RemainAfterExit", "yes", "LogsDirectory", logDir,
			"TimeoutStartSec", fmt.Sprintf("%dms", s.Timeout.Milliseconds()), "ExecStart", program+
				" --ensure-authorized --next-proto=aks-tls-bootstrap --kubeconfig="+kubelet.Kubeconfig+" --cert-dir="+kubelet.CertDir+
				" --cluster-ca-file="+kubelet.CAFile+" --log-file="+log+" $BOOTSTRAP_FLAGS"),
		unitfile.In("Install", "WantedBy", "multi-user.target"))
}

// dropInText: whoever starts kubelet has the program run before.
func dropInText() string {
	return unitfile.Text(
		unitfile.In("Unit", "Before", kubelet.Unit),
		unitfile.In("Service", "EnvironmentFile", settings),
		unitfile.In("Install", "WantedBy", kubelet.Unit))
}
