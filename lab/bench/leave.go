package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
)

// Departure is one way of taking a node with a pod out of the cluster.
type Departure struct {
	Name string
	Runs []Left

	side    side
	command []string
}

// Left is what a run took, and how much it left of what was not there before the join.
type Left struct {
	Command time.Duration
	// Counts are of leftovers, by the name of the count.
	Counts map[string]int
}

const (
	adminPath = "/run/admin.conf"
	tokenPath = "/etc/berth/token"
	caPath    = "/etc/berth/ca.pem"
)

// departures compares with kubeadm reset and prints.
func departures(ctx context.Context, l *lab.Lab, o Options, w io.Writer) error {
	all, err := CompareLeave(ctx, l, o)
	PrintLeave(w, all)
	return err
}

// CompareLeave runs the ways in turn, each o.Pairs times, each run on a fresh node. Pods
// end as they do with kubeadm reset, without the API server being asked, or by eviction.
func CompareLeave(ctx context.Context, l *lab.Lab, o Options) ([]Departure, error) {
	if err := l.EnableKubeadm(ctx); err != nil {
		return nil, err
	}
	leave := []string{"berth", "leave", "--force", "--kubeconfig", adminPath}
	all := []Departure{
		{Name: "kubeadm reset -f", side: kubeadm, command: []string{"kubeadm", "reset", "-f"}},
		{Name: "berth leave, no eviction", side: berth, command: append(leave, "--drain-timeout", "0")},
		{Name: "berth leave", side: berth, command: leave},
	}
	b := &bench{lab: l, log: o.Log}
	for i := range o.Pairs {
		for j := range all {
			d := &all[(i+j)%len(all)]
			if err := b.departure(ctx, d); err != nil {
				return all, fmt.Errorf("%s, round %d: %w", d.Name, i+1, err)
			}
			last := d.Runs[len(d.Runs)-1]
			fmt.Fprintf(o.Log, "%s, round %d: %.2f s, left %v\n", d.Name, i+1, last.Command.Seconds(), last.Counts)
		}
	}
	return all, nil
}

// departure makes a fresh machine a node with a pod, takes it out, and counts.
func (b *bench) departure(ctx context.Context, d *Departure) error {
	admin, err := os.ReadFile(b.lab.Kubeconfig())
	if err != nil {
		return err
	}
	files, err := b.credentials()
	if err != nil {
		return err
	}
	return b.fresh(ctx, lab.NodeConfig{Name: "leave-" + string(d.side), UserData: machine, Files: files}, func(ctx context.Context, n *lab.Node) error {
		if err := n.WriteFile(adminPath, admin, 0o600); err != nil {
			return err
		}
		join, err := b.joining(ctx, n, d.side)
		if err != nil {
			return err
		}
		before, err := look(ctx, n)
		if err != nil {
			return err
		}
		if _, err := b.timed(ctx, n, join); err != nil {
			return err
		}
		if err := b.runPod(ctx, n.Name); err != nil {
			return err
		}
		if err := quiesce(ctx, false); err != nil {
			return err
		}
		start := time.Now()
		if err := n.Run(ctx, d.command...); err != nil {
			return err
		}
		left := Left{Command: time.Since(start)}
		if left.Counts, err = b.count(ctx, n, before); err == nil {
			d.Runs = append(d.Runs, left)
		}
		return err
	})
}

// joining prepares a machine whose containerd runs, and is the command that joins it.
// What kubelet sets of the kernel is what a fresh machine has: nodes share the kernel.
func (b *bench) joining(ctx context.Context, n *lab.Node, s side) ([]string, error) {
	if err := b.prepare(ctx, n, Case{}, s); err != nil {
		return nil, err
	}
	if err := n.Run(ctx, "sh", "-ec", "systemctl start containerd; sysctl -q -w vm.overcommit_memory=0 kernel.panic=0 kernel.panic_on_oops=0"); err != nil {
		return nil, err
	}
	if s == kubeadm {
		return b.lab.KubeadmJoin()
	}
	text, err := b.nodeConfig(func(*v1alpha1.NodeConfig) {})
	if err != nil {
		return nil, err
	}
	return []string{"berth", "join", "-f", configPath}, n.WriteFile(configPath, text, 0o600)
}

// credentials are the files that a NodeConfig of the lab names.
func (b *bench) credentials() (map[string]lab.File, error) {
	ca, err := b.lab.CA()
	return map[string]lab.File{tokenPath: {Content: []byte(lab.Token + "\n"), Mode: 0o600}, caPath: {Content: ca}}, err
}

// nodeConfig is that of a machine with all programs.
func (b *bench) nodeConfig(edit func(*v1alpha1.NodeConfig)) ([]byte, error) {
	c := v1alpha1.NodeConfig{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind,
		Cluster:    v1alpha1.Cluster{Server: "https://" + b.lab.Gateway().String() + ":443", CAFile: caPath},
		Identity:   v1alpha1.Identity{BootstrapToken: &v1alpha1.BootstrapToken{TokenFile: tokenPath}},
		Components: v1alpha1.Components{Kubernetes: v1alpha1.Kubernetes{Version: b.lab.KubernetesVersion()}, SandboxImage: lab.PauseImage},
		Node: v1alpha1.Node{KubeletConfig: json.RawMessage(`{"failCgroupV1": false, "failSwapOn": false, "maxOpenFiles": 20000, "oomScoreAdj": 0,
			"evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"}}`)},
		Networking: v1alpha1.Networking{ClusterDNS: []string{"10.96.0.10"}},
	}
	edit(&c)
	return json.Marshal(c)
}

// runPod has a pod of the image that every node has run on a node.
func (b *bench) runPod(ctx context.Context, node string) error {
	no, at := false, int64(0)
	pods := b.lab.Client().CoreV1().Pods("default")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "on-" + node}, Spec: corev1.PodSpec{
		NodeName: node, AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &at,
		Containers: []corev1.Container{{Name: "pause", Image: lab.PauseImage, ImagePullPolicy: corev1.PullNever}}}}
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		p, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil { // the namespace's service account is made some time
			_, _ = pods.Create(ctx, pod, metav1.CreateOptions{})
			return false, ctx.Err()
		}
		return p.Status.Phase == corev1.PodRunning, nil
	})
}

// lived is a machine as it is: its tree, and lines that tell of the rest.
type lived struct {
	tree  map[string]lab.Entry
	lines map[string][]string
}

// counted are commands whose lines are counted, without what counts up by itself.
var counted = map[string]string{
	"netfilter rules": "nft list ruleset | sed 's/packets [0-9]* bytes [0-9]*//'",
	"sysctls":         `sysctl -a 2>/dev/null | grep -vE '^(fs\.(file-nr|inode-|dentry-|quota\.|aio-nr)|kernel\.(random|ns_last_pid|pty\.nr)|net\.netfilter\.nf_conntrack_count|net\.ipv[46]\.(conf|neigh)\.veth)'`,
	"slices":          "systemctl list-units --all --plain --no-legend 'kubepods*' | cat",
	"cgroups":         "find /sys/fs/cgroup -type d -name 'kubepods*' -o -type d -name 'cri-containerd*'",
	"mounts":          "cat /proc/mounts",
	"interfaces":      "ip -o link | sed 's/^[0-9]*: //; s/ qlen .*//; s/[@:].*//'",
}

func look(ctx context.Context, n *lab.Node) (out lived, err error) {
	out.lines = map[string][]string{}
	for name, command := range counted {
		text, err := n.Output(ctx, "sh", "-c", command)
		if err != nil {
			return out, fmt.Errorf("look at %s: %w", name, err)
		}
		out.lines[name] = strings.Split(strings.TrimSpace(text), "\n")
	}
	// What containerd, which was there before, has of its own is its own.
	out.tree, err = n.Tree(func(path string) bool {
		return lab.ChangesByItself(path) || path == "/var/lib/containerd"
	}, "/", "/var/lib/kubelet")
	return out, err
}

// count counts what is not as it was.
func (b *bench) count(ctx context.Context, n *lab.Node, before lived) (map[string]int, error) {
	now, err := look(ctx, n)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{"files": differing(before.tree, now.tree)}
	for name, lines := range now.lines {
		counts[name] = more(before.lines[name], lines)
	}
	nodes, err := b.lab.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + n.Name})
	if err != nil {
		return nil, err
	}
	pods, err := b.lab.Client().CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.Name})
	if err != nil {
		return nil, err
	}
	counts["Node"], counts["pods"] = len(nodes.Items), len(pods.Items)
	for _, p := range pods.Items { // nobody else takes them away
		if err := b.lab.Client().CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, *metav1.NewDeleteOptions(0)); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// differing counts the paths that came, went, or are another. A directory in which
// something else came or went is counted by that.
func differing(before, now map[string]lab.Entry) int {
	paths := maps.Clone(before)
	maps.Copy(paths, now)
	n := 0
	for path := range paths {
		a, was := before[path]
		b, is := now[path]
		if a.Mode.IsDir() && b.Mode.IsDir() {
			a.Size = b.Size
		}
		if was != is || a != b {
			n++
		}
	}
	return n
}

// more counts the lines that were not there, each as often as it is there more.
func more(before, now []string) int {
	had := map[string]int{}
	for _, line := range before {
		had[line]++
	}
	n := 0
	for _, line := range now {
		if line == "" {
			continue
		}
		if had[line]--; had[line] < 0 {
			n++
		}
	}
	return n
}
