package e2e

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// resource is one item of `berth render -o json`.
type resource struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	Spec struct {
		Path          string        `json:"path"`
		Content       string        `json:"content"`
		Life          string        `json:"life"`
		Key           string        `json:"key"`
		Value         string        `json:"value"`
		KubeletWrites bool          `json:"kubeletWrites"`
		Name          string        `json:"name"`
		Kubeconfig    string        `json:"kubeconfig"`
		CertFile      string        `json:"certFile"`
		KeyFile       string        `json:"keyFile"`
		Triggers      []string      `json:"triggers"`
		File          string        `json:"file"`
		Files         []programFile `json:"files"`
	} `json:"spec"`
}

// programFile is a file of an artifact.
type programFile struct {
	Path string `json:"path"`
}

// mutation is one thing that somebody does to a managed resource behind berth's
// back.
type mutation struct {
	name   string
	script string
	// plan is what berth must plan: "id verb", sorted.
	plan []string
	// restarts are the units that apply may start anew, and no others.
	restarts []string
}

// mutations breaks every managed resource of a node in turn. Each time the plan
// must show exactly that, apply must repair it and restart what it must and
// nothing else, and the plan must be empty again.
func mutations(t *testing.T, _ *lab.Lab, n *lab.Node) {
	m := mutator{resources: render(t, n), empty: emptyDirectories(t, n), live: liveSysctls(t, n)}
	all := m.all()
	for _, mu := range all {
		repair(t, n, mu)
	}
	t.Logf("%d mutations of %d resources", len(all), len(m.resources))
}

func render(t *testing.T, n *lab.Node) []resource {
	t.Helper()
	var out struct {
		State struct {
			Resources []resource `json:"resources"`
		} `json:"state"`
	}
	if err := json.Unmarshal([]byte(run(t, n, berthPath, "render", "-f", configPath, "-o", "json")), &out); err != nil {
		t.Fatal(err)
	}
	if len(out.State.Resources) == 0 {
		t.Fatal("render prints no resources")
	}
	return out.State.Resources
}

// watched are the units whose restarts count.
var watched = []string{"containerd.service", "kubelet.service"}

// repairScript breaks, plans, applies and plans again. It prints one line for
// each step's exit code and invocation ids, and the two plans.
const repairScript = `
ids() { systemctl show -p InvocationID --value containerd.service kubelet.service | tr -s '\n' ' '; }
exec 3>&1 >/tmp/mutation 2>&1
(set -e; %[1]s) || { echo "mutation failed" >&3; cat /tmp/mutation >&3; exit 9; }
before=$(ids)
%[2]s plan -f %[3]s -o json >/tmp/plan; planned=$?
%[2]s apply -f %[3]s >/tmp/apply 2>&1; applied=$?
after=$(ids)
%[2]s plan -f %[3]s -o json >/tmp/again; again=$?
stale=$(systemctl show -p NeedDaemonReload --value containerd.service kubelet.service | tr -s '\n' ' ')
state=$(systemctl show -p LoadState --value containerd.service kubelet.service | tr -s '\n' ' ')
echo "$planned|$applied|$again|$before|$after|$stale|$state" >&3
cat /tmp/plan >&3; echo "======" >&3; cat /tmp/apply >&3; echo "======" >&3; cat /tmp/again >&3
`

// repair carries one mutation out and checks what berth makes of it.
func repair(t *testing.T, n *lab.Node, m mutation) {
	t.Helper()
	r, err := n.ExecInput(within(t, time.Minute), fmt.Appendf(nil, repairScript, m.script, berthPath, configPath), "sh")
	head, body, ok := strings.Cut(string(r.Stdout), "\n")
	parts, fields := strings.Split(body, "======\n"), strings.Split(head, "|")
	if err != nil || !ok || len(parts) != 3 || len(fields) != 7 {
		t.Errorf("%s: %v\n%s%s", m.name, err, r.Stdout, r.Stderr)
		return
	}
	var first planned
	if err := json.Unmarshal([]byte(parts[0]), &first); err != nil {
		t.Errorf("%s: plan: %v\n%s", m.name, err, parts[0])
	}
	if got := first.ids(); !slices.Equal(got, m.plan) {
		t.Errorf("%s: plan shows %q, want %q", m.name, first.Actions, m.plan)
	}
	if fields[0] != "2" || fields[1] != "0" || fields[2] != "0" {
		var second planned
		_ = json.Unmarshal([]byte(parts[2]), &second)
		t.Errorf("%s: plan, apply and plan end with %s, %s, %s; want 2, 0, 0; apply:\n%s\nsecond plan: %q, %q",
			m.name, fields[0], fields[1], fields[2], parts[1], second.Actions, second.Remarks)
	}
	if got := restarted(fields[3], fields[4]); !slices.Equal(got, m.restarts) {
		t.Errorf("%s: restarted %q, want %q", m.name, got, m.restarts)
	}
	if strings.Contains(fields[5], "yes") || strings.TrimSpace(fields[6]) != "loaded loaded" {
		t.Errorf("%s: systemd holds old definitions: NeedDaemonReload %s, LoadState %s", m.name, fields[5], fields[6])
	}
}

// restarted names the units whose invocation is another than before.
func restarted(before, after string) []string {
	var out []string
	b, a := strings.Fields(before), strings.Fields(after)
	for i, u := range watched {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			out = append(out, u)
		}
	}
	return out
}

// mutator makes mutations for a node's resources.
type mutator struct {
	resources []resource
	empty     map[string]bool   // directories without entries
	live      map[string]string // kernel parameters that there are
}

func (m *mutator) all() []mutation {
	var out []mutation
	for _, r := range m.resources {
		switch r.Kind {
		case "file":
			out = append(out, m.file(r)...)
		case "directory":
			out = append(out, m.directory(r)...)
		case "unit":
			out = append(out, m.unit(r)...)
		case "sysctl":
			out = append(out, m.sysctl(r)...)
		case "trust":
			out = append(out, m.trust(r)...)
		case "serving":
			out = append(out, serving(r)...)
		case "credential":
			out = append(out, credential(r)...)
		case "node":
			out = append(out, labelOf(r))
		case "podnetwork":
			out = append(out, podNetwork(r)...)
		case "nftables":
			out = append(out, one(r, "emptied", "nft flush ruleset", "set"))
		case "artifact", "image", "module", "check":
			// An artifact without an address and an image of a registry that is not there
			// can't be repaired, a kernel's module is every node's, and a check is nothing
			// on the machine.
		default:
			out = append(out, mutation{name: "no mutation for kind " + r.Kind, script: "false"})
		}
	}
	return out
}

// one is a mutation that costs no restart.
func one(r resource, what, script, verb string) mutation {
	return mutation{name: r.ID + " " + what, script: script, plan: []string{r.ID + " " + verb}}
}

func (m *mutator) file(r resource) []mutation {
	p := r.Spec.Path
	if r.Spec.Life == "transient" {
		return []mutation{one(r, "there again", "echo old >"+p, "delete")}
	}
	out := []mutation{
		one(r, "edited", "echo edited >>"+p, "update"),
		one(r, "chmodded", "chmod 0751 "+p, "update"),
		one(r, "chowned", "chown 1000:1001 "+p, "update"),
		one(r, "removed", "rm "+p, "create"),
		one(r, "made a link", "rm -f /tmp/moved; mv "+p+" /tmp/moved; ln -s /tmp/moved "+p, "update"),
	}
	if r.Spec.Content != "" {
		out = append(out, one(r, "emptied", ": >"+p, "update"))
	}
	if isDefinition(p) {
		out = append(out,
			one(r, "edited and reloaded", "echo '#' >>"+p+"; systemctl daemon-reload", "update"),
			one(r, "masked", "ln -sfn /dev/null "+p+"; systemctl daemon-reload", "update"))
	}
	used := m.usedBy(p)
	if isDefinition(p) {
		for i := range out {
			out[i].plan = append(out[i].plan, "unit:"+used[0]+" reload")
		}
	}
	for _, u := range used {
		out = append(out, usedEdit(r, u))
	}
	return out
}

func isDefinition(p string) bool { return strings.HasPrefix(p, "/etc/systemd/system/") }

// usedEdit is an edit that a unit was started with: the repair owes it a
// restart.
func usedEdit(r resource, unit string) mutation {
	m := mutation{name: r.ID + " edited, " + unit + " restarted", restarts: []string{unit},
		script: "echo >>" + r.Spec.Path + "; systemctl daemon-reload; systemctl restart " + unit,
		plan:   []string{r.ID + " update", "unit:" + unit + " restart"}}
	slices.Sort(m.plan)
	return m
}

// usedBy are the units that read a file when they start.
func (m *mutator) usedBy(p string) []string {
	var out []string
	for _, r := range m.resources {
		if r.Kind != "unit" {
			continue
		}
		def := "/etc/systemd/system/" + r.Spec.Name
		if slices.Contains(r.Spec.Triggers, p) || p == def || path.Dir(p) == def+".d" {
			out = append(out, r.Spec.Name)
		}
	}
	return out
}

// volumePlugins comes back by itself: kubelet watches it.
const volumePlugins = "/etc/kubernetes/volumeplugins"

func (m *mutator) directory(r resource) []mutation {
	p := r.Spec.Path
	out := []mutation{
		one(r, "chmodded", "chmod 0711 "+p, "update"),
		one(r, "chowned", "chown 1000:1001 "+p, "update"),
	}
	if m.empty[p] && p != volumePlugins {
		out = append(out, one(r, "removed", "rmdir "+p, "create"))
	}
	return out
}

func (m *mutator) unit(r resource) []mutation {
	u := r.Spec.Name
	again := []string{u}
	out := []mutation{
		{r.ID + " stopped", "systemctl stop " + u, []string{r.ID + " start"}, again},
		one(r, "disabled", "systemctl disable "+u, "enable"),
		{r.ID + " stopped and disabled", "systemctl disable --now " + u, []string{r.ID + " enable", r.ID + " start"}, again},
		{r.ID + " has a foreign drop-in", "mkdir -p /etc/systemd/system/" + u + ".d; printf '[Service]\\nNice=0\\n' >/etc/systemd/system/" + u + ".d/99-foreign.conf",
			[]string{r.ID + " restart"}, again},
		{r.ID + " lost a foreign drop-in", "rm /etc/systemd/system/" + u + ".d/99-foreign.conf", []string{r.ID + " restart"}, again},
	}
	if !m.has("file:/etc/systemd/system/" + u) { // else masked in place of its definition: see file
		unmask := []string{r.ID + " reload", r.ID + " unmask"}
		out = append(out,
			mutation{r.ID + " masked", "systemctl mask " + u, unmask, nil},
			mutation{r.ID + " masked until the next boot", "systemctl mask --runtime " + u, unmask, nil},
			mutation{r.ID + " masked and stopped", "systemctl mask --now " + u, []string{r.ID + " start", r.ID + " unmask"}, again})
	}
	return m.withImages(u, out)
}

// withImages: whether an image is there, a runtime that does not run can't tell.
func (m *mutator) withImages(unit string, all []mutation) []mutation {
	for i := range all {
		if unit != "containerd.service" || !slices.Contains(all[i].plan, "unit:"+unit+" start") {
			continue
		}
		for _, r := range m.resources {
			if r.Kind == "image" {
				all[i].plan = append(all[i].plan, r.ID+" import")
			}
		}
		slices.Sort(all[i].plan)
	}
	return all
}

func (m *mutator) has(id string) bool {
	return slices.ContainsFunc(m.resources, func(r resource) bool { return r.ID == id })
}

// twins are parameters that the kernel changes together.
var twins = map[string]string{
	"net.ipv4.ip_forward":          "net.ipv4.conf.all.forwarding",
	"net.ipv4.conf.all.forwarding": "net.ipv4.ip_forward",
}

func (m *mutator) sysctl(r resource) []mutation {
	key := r.Spec.Key
	value, there := m.live[key]
	if !there || r.Spec.KubeletWrites {
		return nil
	}
	other := "0"
	if value == "0" || value == "1" && strings.HasPrefix(key, "net.ipv4.tcp_") {
		other = "1"
	} else if value != "1" {
		other = value + "0"
	}
	mu := one(r, "set", "sysctl -w "+key+"="+other, "set")
	if twin := twins[key]; twin != "" {
		mu.plan = append(mu.plan, "sysctl:"+twin+" set")
		slices.Sort(mu.plan)
	}
	return []mutation{mu}
}

func (m *mutator) trust(r resource) []mutation {
	const bundle = "/etc/ssl/certs/ca-certificates.crt"
	p := "/usr/local/share/ca-certificates/" + r.Spec.Name + ".crt"
	return []mutation{
		one(r, "edited", "echo edited >>"+p, "update"),
		one(r, "emptied", ": >"+p, "update"),
		one(r, "chmodded", "chmod 0751 "+p, "update"),
		one(r, "chowned", "chown 1000:1001 "+p, "update"),
		one(r, "removed", "rm "+p, "create"),
		one(r, "not in the bundle", ": >"+bundle, "update"),
	}
}

func serving(r resource) []mutation {
	cert, key := r.Spec.CertFile, r.Spec.KeyFile
	return []mutation{
		one(r, "certificate edited", "echo edited >"+cert, "issue"),
		one(r, "certificate removed", "rm "+cert, "issue"),
		one(r, "key removed", "rm "+key, "issue"),
		one(r, "key chmodded", "chmod 0644 "+key, "update"),
		one(r, "certificate chowned", "chown 1000:1001 "+cert, "update"),
	}
}

// credential: kubelet reads its first certificate once.
func credential(r resource) []mutation {
	p := r.Spec.Kubeconfig
	const unit = "kubelet.service"
	issue := []string{r.ID + " issue", "unit:" + unit + " restart"}
	return []mutation{
		{r.ID + " names another server", "sed -i s,https://,https://other., " + p, issue, []string{unit}},
		{r.ID + " emptied", ": >" + p, issue, []string{unit}},
		{r.ID + " removed", "rm " + p, issue, []string{unit}},
	}
}

// labelOf: somebody with the node's credential changes a label.
func labelOf(r resource) mutation {
	const pki, certs = "/var/lib/kubelet/pki/kubelet-client-current.pem", "/etc/kubernetes/certs/ca.crt"
	return one(r, "label changed", "curl -sSf --cacert "+certs+" --cert "+pki+" --key "+pki+
		" -X PATCH -H 'Content-Type: application/merge-patch+json' -d '{\"metadata\":{\"labels\":{\"agentpool\":\"edited\"}}}' "+
		"$(sed -n 's/ *server: //p' /var/lib/kubelet/kubeconfig)/api/v1/nodes/"+r.Spec.Name, "update")
}

// podNetwork: containerd makes it once after each start of kubelet, some time after
// it: one that is removed before comes back by itself.
func podNetwork(r resource) []mutation {
	const unit = "kubelet.service"
	restart := "unit:" + unit + " restart"
	told := "journalctl -q -o cat _SYSTEMD_INVOCATION_ID=$(systemctl show -p InvocationID --value " + unit + ") | grep -q 'Updating Pod CIDR'"
	return []mutation{
		{r.ID + " removed", "until " + told + "; do sleep 0.1; done; rm " + r.Spec.File, []string{restart}, []string{unit}},
		{r.ID + " edited", "until test -e " + r.Spec.File + "; do sleep 0.1; done; echo >>" + r.Spec.File, []string{r.ID + " delete", restart}, []string{unit}},
	}
}

func emptyDirectories(t *testing.T, n *lab.Node) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for line := range strings.Lines(run(t, n, "find", "/etc", "/opt", "/var/lib", "-xdev", "-type", "d", "-empty")) {
		out[strings.TrimSpace(line)] = true
	}
	return out
}

func liveSysctls(t *testing.T, n *lab.Node) map[string]string {
	t.Helper()
	out := map[string]string{}
	r, err := n.Exec(within(t, time.Minute), "sysctl", "-a")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(r.Stdout)) {
		if k, v, ok := strings.Cut(line, " = "); ok {
			out[k] = strings.TrimSpace(v)
		}
	}
	return out
}
