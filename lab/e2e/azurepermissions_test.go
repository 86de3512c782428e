package e2e

import (
	"encoding/pem"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// armGroup is where the lab's machines of Azure Arc are.
const armGroup = "/subscriptions/" + azureTenant + "/resourceGroups/edge"

// arm is an Azure Resource Manager of the tenant.
type arm struct {
	*serve.ResourceManager
	url, ca string
}

// newARM serves one in which the application may do everything.
func (a *azure) newARM(t *testing.T) *arm {
	t.Helper()
	cert, err := serve.Stranger(a.lab.Gateway().String())
	if err != nil {
		t.Fatal(err)
	}
	m := &arm{ResourceManager: serve.NewResourceManager(applicationO, machineID, a.userKubeconfig(t))}
	m.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[1]}))
	listen(t, a.lab, func(at net.Listener) *serve.Server {
		m.url = "https://" + at.Addr().String()
		return serve.StartTLS(at, cert, m)
	})
	return m
}

// permission is a row of a table of docs/azure-permissions.md.
type permission struct {
	role, scope, needed string
	actions             []string
}

// permissions are the rows of a section.
func permissions(t *testing.T, section string) (out []permission) {
	t.Helper()
	text, err := os.ReadFile("../../docs/azure-permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n## "+section+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	scopes := map[string]string{"the AKS cluster": aksCluster, "the resource group of the machine": armGroup}
	for l := range strings.Lines(rest) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(l), "| "), " | ")
		if len(cells) != 5 || scopes[cells[1]] == "" {
			continue
		}
		out = append(out, permission{cells[0], scopes[cells[1]], cells[4], strings.Split(strings.Trim(cells[3], "`"), "`, `")})
	}
	if len(out) == 0 {
		t.Fatalf("there is no table in the section %q", section)
	}
	return out
}

// misses: a check names what is not allowed, where, and the role that would allow it.
func (p *permission) misses(t *testing.T, c checked, check, status string) {
	t.Helper()
	got := c.of(check)
	for _, want := range []string{p.scope + ": " + strings.Join(p.actions, ", ") + " is not allowed", "\nremedy: give it the role " + p.role + " on " + p.scope} {
		if !strings.HasPrefix(got, status+": ") || !strings.Contains(got, want) {
			t.Errorf("the role %s is missing, and there is no %q in %s", p.role, want, got)
		}
	}
}

// asksPermissions: Azure was asked in each scope of some permissions.
func (m *arm) asksPermissions(t *testing.T, all []permission) {
	t.Helper()
	for _, p := range all {
		if n, _ := m.Count(p.scope + "/providers/Microsoft.Authorization/permissions"); n == 0 {
			t.Errorf("nobody asked what is allowed in %s", p.scope)
		}
	}
}

// operatorsRights: preflight asks Azure for each permission of who registers the machine,
// and names the role that lacks one. What is for undoing alone keeps nobody from joining.
// The machine has no identity yet, and so its cluster is not known.
func operatorsRights(t *testing.T, n *lab.Node, m *arm, text []byte) {
	t.Helper()
	all := permissions(t, "Who registers machines")
	ignored := []string{"--ignore", "cgroups,swap,disk"} // they need kubelet's settings, which the document has not told yet
	c := preflight(t, n, 0, text, ignored...)
	for _, check := range []string{"azure-operator", "azure-machine", "arc"} {
		if got := c.of(check); !strings.HasPrefix(got, "ok: ") {
			t.Errorf("%s: %s", check, got)
		}
	}
	for _, check := range []string{"document", "credential"} {
		if got := c.of(check); !slices.Contains(c.with("unknown"), check) || !strings.Contains(got, "when the join has registered the machine") {
			t.Errorf("%s: %s", check, got)
		}
	}
	m.asksPermissions(t, all)
	for _, p := range all {
		code, status := 1, "error"
		if p.needed == "to undo it" {
			code, status = 0, "warning"
		}
		m.Withhold(p.actions...)
		p.misses(t, preflight(t, n, code, text, ignored...), "azure-operator", status)
	}
	m.Withhold()
}

// machinesRights: preflight asks Azure for the permission of the machine's own identity,
// and is content when it has the role.
func (a *azure) machinesRights(t *testing.T, n *lab.Node) {
	t.Helper()
	m := a.newARM(t)
	text := ownDocument(t, a.lab, func(c *v1alpha1.NodeConfig) {
		c.Cluster = v1alpha1.Cluster{ResourceID: aksCluster, Location: "westeurope"}
		c.Identity = v1alpha1.Identity{ManagedIdentity: &v1alpha1.ManagedIdentity{ClientID: azureClient, TenantID: azureTenant}}
		c.Azure.ResourceManager, c.Trust.CAs = m.url, []string{m.ca}
		c.Networking.ClusterDomain = "cluster.local"
	})
	all := permissions(t, "The machine's identity")
	c := preflight(t, n, 1, text)
	m.asksPermissions(t, all)
	for _, p := range all {
		p.misses(t, c, "azure-machine", "error")
	}
	m.Assign(aksCluster, machineID)
	c = preflight(t, n, 0, text)
	for _, check := range []string{"azure-machine", "document", "credential", "approval"} {
		if got := c.of(check); !strings.HasPrefix(got, "ok: ") {
			t.Errorf("%s: %s", check, got)
		}
	}
}
