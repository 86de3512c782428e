package faults_test

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"text/template"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component/cni"
	"github.com/berth-dev/berth/internal/component/ssh"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

const (
	sshUnit   = "ssh.service"
	sshServer = "/usr/sbin/sshd"
	// podAddresses is what the cluster gave the node.
	podAddresses = "/cluster/addresses"
)

// vendorSSH is Debian's, without what the model knows nothing of.
const vendorSSH = `[Unit]
Description=OpenBSD Secure Shell server
After=network.target
[Service]
ExecStart=/usr/sbin/sshd -D
ExecReload=/usr/sbin/sshd -t
ExecReload=/bin/kill -HUP $MAINPID
KillMode=process
Restart=on-failure
Type=notify
[Install]
WantedBy=multi-user.target
`

// bridged lets containerd make the pod network.
func bridged(c *aksnodeconfigv1.Configuration) {
	c.NetworkConfig.NetworkPolicy = aksnodeconfigv1.NetworkPolicy_NETWORK_POLICY_NONE
}

// serving is a machine with an SSH server that runs, and a node of a cluster that gives
// addresses.
func serving(machine func() *memory.Host) func() *memory.Host {
	return func() *memory.Host {
		h := machine()
		h.Put(podAddresses, "10.244.1.0/24", 0o600)
		h.Put(ssh.Config, "Include "+ssh.DropInDir+"/*.conf\nUsePAM yes\n", 0o644)
		h.PutDir(ssh.DropInDir)
		h.Put("/usr/lib/systemd/system/"+sshUnit, vendorSSH, 0o644)
		h.PutLink("/usr/lib/systemd/system/"+sshUnit, "/etc/systemd/system/multi-user.target.wants/"+sshUnit, 0)
		h.Reads(sshUnit, ssh.Config, ssh.DropIn)
		servesSSH(h)
		check(h.StartUnit(tctx, sshUnit))
		h.Flush()
		return h
	}
}

// openedUp is a machine whose SSH server somebody has told to let keys in.
func openedUp(machine func() *memory.Host) func() *memory.Host {
	return func() *memory.Host {
		h := machine()
		letIn(h)
		check(h.ReloadUnit(tctx, sshUnit))
		h.Flush()
		h.Advance(time.Minute)
		return h
	}
}

func letIn(h *memory.Host) {
	edit(h, ssh.DropIn, func(string) string { return "PubkeyAuthentication yes\n" })
}

// servesSSH is the server's program where there is a server. Its service makes the directory that
// it parts privileges in.
func servesSSH(h *memory.Host) {
	if _, err := h.Lstat(ssh.Config); err != nil {
		return
	}
	h.Behave(sshUnit, func(memory.Start) memory.Outcome {
		h.PutDir("/run/sshd")
		return memory.Outcome{}
	})
	h.Program(sshServer, func(c host.Command) host.Output {
		from := ssh.Config
		if i := slices.Index(c.Args, "-f"); i >= 0 {
			from = c.Args[i+1]
		}
		keys := setting(h, from, "PubkeyAuthentication")
		if keys == "" {
			keys = "yes"
		}
		return host.Output{Stdout: []byte("port 22\npubkeyauthentication " + keys + "\n")}
	})
}

// setting is the first that a file of the server's has of a keyword, as the server has it; "" for
// none.
func setting(h *memory.Host, p, keyword string) string {
	text, _ := h.ReadFile(p)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) < 2:
		case words[0] == keyword:
			return words[1]
		case words[0] == "Include":
			names, _ := h.ReadDir(path.Dir(words[1]))
			for _, name := range names {
				if value := setting(h, path.Join(path.Dir(words[1]), name), keyword); path.Ext(name) == ".conf" && value != "" {
					return value
				}
			}
		}
	}
	return ""
}

// addresses is the pod network as containerd makes it when kubelet tells it the node's addresses,
// unless there is one.
func addresses(h *memory.Host) {
	cidr, err := h.ReadFile(podAddresses)
	names, _ := h.ReadDir(cni.ConfDir)
	text, without := h.ReadFile(cni.TemplateFile)
	if err != nil || len(names) > 0 || without != nil {
		return
	}
	parsed, err := template.New("").Parse(string(text))
	if err != nil {
		return // containerd logs it
	}
	var made bytes.Buffer
	check(parsed.Execute(&made, map[string][]string{"PodCIDRRanges": {string(cidr)}, "Routes": {"0.0.0.0/0"}}))
	h.Put(cni.GeneratedFile, made.String(), 0o644)
}

// earlier is a state of an earlier version, which had another template of the pod network.
func earlier(st *desired.State) (*desired.State, error) {
	const now, then = `"cbr0"`, `"old0"`
	out := &desired.State{Owner: st.Owner}
	for _, r := range st.Resources {
		switch r := r.(type) {
		case *desired.PodNetwork:
			old := *r
			old.Parts = slices.Clone(r.Parts)
			old.Parts[0] = strings.Replace(r.Parts[0], now, then, 1)
			out.Add(&old)
			continue
		case *desired.File:
			if r.Path == cni.TemplateFile {
				old := *r
				old.Content = desired.Text(strings.Replace(string(r.Content.Data()), now, then, 1))
				out.Add(&old)
				continue
			}
		}
		out.Add(r)
	}
	return out, out.Seal()
}
