package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
	"github.com/berth-dev/berth/pkg/nodeinit"
)

// standIn has the agent's place where a test is about how it arrives: it writes how
// it was called.
const standIn = "#!/bin/sh\necho \"$0 $*\" >>/run/agent-called\n"

// initData is what a machine is told, but for where its agent comes from.
func initData(t *testing.T, l *lab.Lab, machine string) nodeinit.Data {
	t.Helper()
	ca, err := l.CA()
	check(t, err)
	configuration, err := json.Marshal(map[string]any{
		"apiVersion": "nodeagent.config.gardener.cloud/v1alpha1", "kind": "NodeAgentConfiguration",
		"apiServer":   map[string]any{"server": l.APIServer(), "caFile": nodeinit.Dir + "/cluster-ca.crt"},
		"controllers": map[string]any{"operatingSystemConfig": map[string]any{"secretName": "init-pool", "kubernetesVersion": l.KubernetesVersion()}},
	})
	check(t, err)
	return nodeinit.Data{ClusterCA: ca, BootstrapToken: lab.Token, MachineName: machine, Version: "v0.0.0-test", Configuration: configuration}
}

// TestInitDataImage boots cloud-init with an agent out of an OCI image.
func TestInitDataImage(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	reg := serveImages(t, l)
	program := filepath.Join(t.TempDir(), "agent")
	check(t, os.WriteFile(program, []byte(standIn), 0o755))
	digest, err := reg.Push(within(t, time.Minute), "agent:1", serve.StaticImage("agent", program))
	check(t, err)
	d := initData(t, l, "init-image")
	d.Binary = nodeinit.Binary{Image: reg.server + "/agent:1@" + digest, PathInImage: "/agent"}
	doc, err := nodeinit.CloudConfig(d)
	check(t, err)
	n := addNode(t, l, lab.NodeConfig{Name: "init-image", UserData: []byte(doc), Files: reg.trust()})
	agentCalled(t, n)
	initFiles(t, n, d)
	wantNoMount(t, n)
	if out := run(t, n, "cloud-init", "schema", "--system"); !strings.Contains(out, "Valid") || strings.Contains(out, "rror") {
		t.Errorf("cloud-init schema: %s", out)
	}
	// Cut off between its steps, the unit has left the image mounted. containerd may
	// need a moment to give up a mount: then this test's next try has it, and the unit's.
	run(t, n, "rm", "/run/agent-called")
	eventually(t, "the image mounted again", 30*time.Second, func() bool {
		r, err := n.Exec(within(t, time.Minute), "ctr", "images", "mount", d.Binary.Image, "/run/gardener-node-init")
		return err == nil && r.Code == 0
	})
	run(t, n, "systemctl", "start", "--no-block", nodeinit.Unit)
	agentCalled(t, n)
	wantNoMount(t, n)
}

func wantNoMount(t *testing.T, n *lab.Node) {
	t.Helper()
	if out := run(t, n, "sh", "-c", "findmnt /run/gardener-node-init; ctr snapshots ls | grep gardener; true"); out != "" {
		t.Errorf("left behind: %s", out)
	}
}

// TestInitDataURL boots Ignition with an agent out of a download. A download that is
// not what it should be does not run, and keeps nobody from logging in.
func TestInitDataURL(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	a := serve.NewArtifacts()
	blob := a.Add("/agent 1", []byte(standIn))
	d := initData(t, l, "init-url")
	d.Binary = nodeinit.Binary{SHA256: blob.SHA256,
		URL: fmt.Sprintf("http://%s:%d/agent%%201?x=$HOME", l.Gateway(), listen(t, l, plain(a)))}
	doc, err := nodeinit.Ignition(d)
	check(t, err)
	n := addNode(t, l, lab.NodeConfig{Name: "init-url", Ignition: []byte(doc)})
	agentCalled(t, n)
	initFiles(t, n, d)
	a.Add("/agent 1", []byte(standIn+"# other\n"))
	run(t, n, "rm", "/run/agent-called")
	if r, err := n.Exec(within(t, time.Minute), "systemctl", "start", nodeinit.Unit); err != nil || r.Code == 0 {
		t.Errorf("a download with another digest was taken: %v\n%s", err, r.Stderr)
	}
	if n.Exists("/run/agent-called") {
		t.Error("a download with another digest was run")
	}
	if got, err := n.ReadFile(nodeinit.Installed); err != nil || string(got) != standIn {
		t.Errorf("%v, the agent in its place is %q", err, got)
	}
	run(t, n, "systemctl", "is-active", "multi-user.target", "systemd-user-sessions.service")
	if n.Exists("/run/nologin") {
		t.Error("nobody can log in")
	}
	makeKey(t, n)
	saysToRoot(t, "before any document", n, "")
	a.Add("/agent 1", []byte(standIn))
	agentCalled(t, n) // by itself
}

// agentCalled waits for the agent's bootstrap.
func agentCalled(t *testing.T, n *lab.Node) {
	t.Helper()
	if err := n.WaitFor(within(t, 2*time.Minute), "test", "-s", "/run/agent-called"); err != nil {
		t.Fatalf("%v\n%s", err, run(t, n, "journalctl", "--no-pager", "-n", "60", "-u", nodeinit.Unit))
	}
	want := "/opt/bin/gardener-node-agent bootstrap --config-dir=/var/lib/gardener-node-agent\n"
	if got := run(t, n, "cat", "/run/agent-called"); got != want {
		t.Errorf("called as %q", got)
	}
}

// TestInitDataAgent makes bare machines nodes with nothing but init data, however the agent
// arrives: the agent has the rights that berth rbac prints, berth's approver approves its
// certificate, and its document brings kubelet out of an image, its configuration and
// containerd's.
func TestInitDataAgent(t *testing.T) {
	t.Parallel()
	done := turn(t)
	l := sharedLab(t)
	applyRBAC(t, l, "--secret", "init-pool")
	startApprover(t, l, "init-agent*")
	reg, files := serveImages(t, l), serve.NewArtifacts()
	push := func(name, program string) string {
		digest, err := reg.Push(within(t, time.Minute), name+":1", serve.StaticImage(name, program))
		check(t, err)
		return reg.server + "/" + name + ":1@" + digest
	}
	program, err := os.ReadFile(l.Berth())
	check(t, err)
	blob := files.Add("/berth", program)
	url := fmt.Sprintf("http://%s:%d/berth", l.Gateway(), listen(t, l, plain(files)))
	agentImage := push("agent", l.Berth())
	checksum := initDocument(t, l, push("kubelet", filepath.Join(l.Programs(), "kubelet")))
	done()
	t.Run("machines", func(t *testing.T) { // the cluster's part stays until the last one is done
		for name, c := range map[string]struct {
			binary   nodeinit.Binary
			ignition bool
		}{
			"init-agent":       {binary: nodeinit.Binary{Path: berthPath}},
			"init-agent-image": {binary: nodeinit.Binary{Image: agentImage, PathInImage: "/agent"}},
			"init-agent-url":   {binary: nodeinit.Binary{URL: url, SHA256: blob.SHA256}, ignition: true},
		} {
			t.Run(name, func(t *testing.T) {
				parallelLong(t)
				d := initData(t, l, name)
				d.Binary = c.binary
				machine := lab.NodeConfig{Name: name, Files: reg.trust()}
				if c.ignition {
					doc, err := nodeinit.Ignition(d)
					check(t, err)
					machine.Ignition = []byte(doc)
				} else {
					doc, err := nodeinit.CloudConfig(d)
					check(t, err)
					machine.UserData = []byte(doc)
				}
				initNode(t, l, machine, checksum)
			})
		}
		t.Run("init-agent-reset", func(t *testing.T) {
			parallelLong(t)
			initReset(t, l, reg.trust())
		})
	})
}

// initReset: an agent that made a machine a node takes all of it away, the pods that run, too.
func initReset(t *testing.T, l *lab.Lab, trust map[string]lab.File) {
	t.Helper()
	n := addNode(t, l, lab.NodeConfig{Name: "init-agent-reset", Files: trust})
	_, err := n.WaitBooted(within(t, 2*time.Minute))
	check(t, err)
	kubeletWas(t, n)
	d := initData(t, l, n.Name)
	run(t, n, "mkdir", "-p", nodeinit.Dir+"/credentials")
	for name, content := range map[string][]byte{
		"cluster-ca.crt": d.ClusterCA, "credentials/bootstrap-token": []byte(d.BootstrapToken), "machine-name": []byte(n.Name), "config-v0.0.0-test.yaml": d.Configuration,
	} {
		check(t, n.WriteFile(nodeinit.Dir+"/"+name, content, 0o600))
	}
	see := func() asItIs {
		now := look(t, n, "/var/lib/containerd", nodeinit.Dir)
		delete(now.Live, "sysctl") // kubelet's, see TestLeave
		return now
	}
	before := see()
	run(t, n, berthPath, "agent", "bootstrap", "--config-dir", nodeinit.Dir)
	_, err = l.WaitNodeReady(within(t, 2*time.Minute), n.Name)
	check(t, err)
	runPod(t, l, "init-agent-pod", n.Name)
	if out := run(t, n, "sh", "-c", berthPath+" agent reset 2>&1"); strings.Contains(out, "kept") || !strings.Contains(out, "the agent is gone") {
		t.Errorf("reset: %s", out)
	}
	if diff := cmp.Diff(before, see()); diff != "" {
		t.Error(diff)
	}
	if out := run(t, n, "sh", "-c", "cd "+nodeinit.Dir+"; find . -type f | sort | xargs; ls -A /run/containerd/io.containerd.runtime.v2.task/k8s.io || true"); out != "./cluster-ca.crt ./config-v0.0.0-test.yaml ./machine-name\n" {
		t.Errorf("left: %s", out)
	}
}

// initNode boots a machine and waits until its agent has made it a node.
func initNode(t *testing.T, l *lab.Lab, machine lab.NodeConfig, checksum string) {
	t.Helper()
	start := time.Now()
	n := addNode(t, l, machine)
	if _, err := l.WaitNodeReady(within(t, 2*time.Minute), n.Name); err != nil {
		t.Fatalf("%v\n%s", err, run(t, n, "journalctl", "--no-pager", "-n", "80", "-u", nodeinit.Unit, "-u", agentUnit, "-u", "kubelet"))
	}
	t.Logf("Ready %.1f s after the start of nspawn", time.Since(start).Seconds())
	if _, err := l.WaitNode(within(t, time.Minute), n.Name, func(node *corev1.Node) bool { return node.Annotations[agentApplied] == checksum }); err != nil {
		t.Fatal(err)
	}
	if runs := strings.TrimSpace(run(t, n, "sh", "-c", "readlink /proc/$(systemctl show -P MainPID kubelet)/exe")); runs != initKubelet {
		t.Errorf("kubelet is %s", runs)
	}
	succeeds(t, func(ctx context.Context) error {
		if n.Exists(nodeinit.Dir+"/credentials/bootstrap-token") || n.Exists("/var/lib/kubelet/kubeconfig-bootstrap") {
			return errors.New("the token is left")
		}
		_, err := l.Client().CoordinationV1().Leases("kube-system").Get(ctx, "gardener-node-agent-"+n.Name, metav1.GetOptions{})
		return err
	})
	if r, err := n.Exec(within(t, 10*time.Second), "systemctl", "is-enabled", nodeinit.Unit); err != nil || strings.Contains(string(r.Stdout), "enabled") {
		t.Errorf("%v, the init unit is %s", err, r.Stdout)
	}
	if log := run(t, n, "journalctl", "--no-pager", "-u", agentUnit); strings.Contains(log, "forbidden") || strings.Contains(log, "cannot") {
		t.Errorf("the agent lacks a right:\n%s", log)
	}
}

// initKubelet is where the document puts kubelet: the machine's own is not used.
const initKubelet = "/opt/osc/kubelet"

// initDocument puts what a person would write for a node into the agents' Secret, with
// kubelet out of an image. It returns its checksum.
func initDocument(t *testing.T, l *lab.Lab, image string) string {
	t.Helper()
	var hand struct {
		Files []struct{ Path, Content string } `json:"write_files"`
	}
	check(t, yaml.Unmarshal(handWritten(t, l, "10.99.0.1"), &hand))
	byAgent := strings.NewReplacer("/etc/kubernetes/ca.crt", nodeinit.Dir+"/cluster-ca.crt", "--node-ip=10.99.0.1", "",
		"/etc/kubernetes/bootstrap-kubelet.conf", "/var/lib/kubelet/kubeconfig-bootstrap", "/var/lib/kubelet/kubeconfig ", "/var/lib/kubelet/kubeconfig-real ")
	var files, units string
	for _, f := range hand.Files {
		switch f.Path {
		case "/etc/containerd/config.toml", "/etc/cni/net.d/10-ptp.conflist", "/etc/kubernetes/kubelet.yaml":
			files += oscFile(f.Path, byAgent.Replace(f.Content))
		case "/etc/systemd/system/kubelet.service":
			own := strings.Replace(byAgent.Replace(f.Content), "ExecStart=/opt/bin/kubelet", "ExecStart="+initKubelet, 1)
			units += oscUnit("kubelet.service", own, "/etc/kubernetes/kubelet.yaml", initKubelet)
		}
	}
	files += "  - path: " + initKubelet + "\n    permissions: 493\n    content: {imageRef: {image: '" + image + "', filePathInImage: /kubelet}}\n"
	units += "  - name: containerd.service\n    command: start\n    enable: true\n    filePaths: [/etc/containerd/config.toml]\n"
	text := oscDocument(files, units)
	sum := sha256.Sum256([]byte(text))
	checksum := hex.EncodeToString(sum[:])
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "init-pool", Annotations: map[string]string{"checksum/data-script": checksum}},
		Data: map[string][]byte{"osc.yaml": []byte(text)}}
	secrets := l.Client().CoreV1().Secrets("kube-system")
	_, err := secrets.Create(within(t, 10*time.Second), s, metav1.CreateOptions{})
	check(t, err)
	t.Cleanup(func() { check(t, secrets.Delete(context.Background(), s.Name, metav1.DeleteOptions{})) })
	return checksum
}

// initFiles looks at what the agent finds.
func initFiles(t *testing.T, n *lab.Node, d nodeinit.Data) {
	t.Helper()
	for path, want := range map[string]string{
		"cluster-ca.crt": string(d.ClusterCA), "credentials/bootstrap-token": d.BootstrapToken,
		"machine-name": d.MachineName, "config-v0.0.0-test.yaml": string(d.Configuration),
	} {
		path = nodeinit.Dir + "/" + path
		got, err := n.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s: %v, %q", path, err, got)
			continue
		}
		if info, err := n.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, err, info.Mode())
		}
	}
}
