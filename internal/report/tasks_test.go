package report

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host/memory"
)

// contract is where the names of the published tasks are, and states made of documents.
const contract = "../contract/aks/testdata/"

// idsOfStates are the ids of all resources of the states.
func idsOfStates(t *testing.T) []desired.ID {
	t.Helper()
	entries, err := os.ReadDir(contract + "state")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[desired.ID]bool{}
	for _, e := range entries {
		b, err := os.ReadFile(contract + "state/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"id": "([^"]+)"`).FindAllSubmatch(b, -1) {
			ids[desired.ID(m[1])] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// TestEveryActionHasATask: whatever a run does has a name for its event, a published
// one where the published chain has the same, and each name on the list is one and
// is in use.
func TestEveryActionHasATask(t *testing.T) {
	b, err := os.ReadFile(contract + "tasks.txt")
	if err != nil {
		t.Fatal(err)
	}
	published := strings.Fields(string(b))
	for _, task := range Tasks {
		if !slices.Contains(published, task.Name) {
			t.Errorf("%s is no published task", task.Name)
		}
	}
	if !slices.Contains(published, TaskRun) {
		t.Errorf("%s is no published task", TaskRun)
	}
	if !slices.IsSortedFunc(Tasks, func(a, b Task) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the tasks are not in order")
	}
	named := map[string]bool{}
	ids := append(idsOfStates(t), "trust:aks-cloud-ca-0") // of a cloud of its own, which no state here is of
	for _, id := range ids {
		name := TaskOf(id)
		if name == "" {
			t.Errorf("%s has no task", id)
		}
		named[name] = true
	}
	for _, kind := range converge.Kinds() {
		if TaskOf(desired.ID(kind+":x")) == "" {
			t.Errorf("the kind %s has no task", kind)
		}
	}
	for _, task := range Tasks {
		if !named[task.Name] {
			t.Errorf("nothing is called %s", task.Name)
		}
	}
	golden.Region(t, "../../docs/aks-phases.md", "events", eventTable(ids, published))
}

func eventTable(ids []desired.ID, published []string) string {
	var b strings.Builder
	b.WriteString("| event | about |\n|---|---|\n")
	fmt.Fprintf(&b, "| `AKS.%s` `AKS.%s` | the run as a whole |\n", TaskRun, TaskProvision)
	fmt.Fprintf(&b, "| `AKS.%s` | a wait for a run's end |\n", TaskProvisionWait)
	for _, task := range Tasks {
		fmt.Fprintf(&b, "| `AKS.%s` | `%s` |\n", task.Name, strings.Join(task.Of, "` `"))
	}
	fmt.Fprintf(&b, "| `AKS.%s` | what a cloud of its own was asked for, and what came of it |\n", strings.Join(ofCloudCA(published), "` `AKS."))
	others := map[string]bool{}
	for _, name := range kindTasks {
		others["`AKS."+ownTasks+name+"`"] = true
	}
	fmt.Fprintf(&b, "| %s | what else there is of a kind |\n", strings.Join(slices.Sorted(maps.Keys(others)), " "))
	b.WriteString("| `AKS.AKSNodeController.Read` `AKS.AKSNodeController.Translate` `AKS.AKSNodeController.Sync` `AKS.AKSNodeController.Wait` | steps of the run itself |\n")
	return b.String()
}

// ofCloudCA are the published tasks of a cloud's certificate authorities that are no work on
// a resource.
func ofCloudCA(published []string) []string {
	return slices.DeleteFunc(slices.Clone(published), func(name string) bool {
		return !strings.HasPrefix(name, tasksOfCloudCA) || slices.ContainsFunc(Tasks, func(t Task) bool { return t.Name == name })
	})
}

func TestTaskOf(t *testing.T) {
	for _, c := range []struct {
		span converge.Span
		want string
	}{
		{converge.Span{ID: "file:/etc/kubernetes/certs/ca.crt", Verb: "create"}, "CSE.ensureKubeCACert"},
		{converge.Span{ID: "cloud-ca:isOptedIn", Verb: "ask"}, "CSE.rcv1p.isOptedIn"},
		{converge.Span{ID: "trust:aks-cloud-ca-0", Verb: "create"}, "CSE.rcv1p.installCertsToTrustStore"},
		{converge.Span{ID: "trust:aks-cloud-ca-0", Verb: "create", Error: "x"}, "CSE.rcv1p.installCertsFailed"},
		{converge.Span{ID: "trust:aks-custom-ca-0", Verb: "create", Error: "x"}, "CSE.configureCustomCaCertificate"},
		{converge.Span{ID: "file:/etc/kubernetes/certs/client.crt", Verb: "create"}, "CSE.configureK8s"},
		{converge.Span{ID: "image:registry.example/oss/pause:3.10", Verb: "import"}, "CSE.ensureKubelet.ensurePodInfraContainerImage"},
		{converge.Span{ID: "image:registry.example/kube-proxy:v1", Verb: "import"}, "AKSNodeController.Image"},
		{converge.Span{ID: "image:mcr.microsoft.com/aks/aks-gpu-grid:570.1-2026", Verb: "load"}, "CSE.ensureGPUDrivers"},
		{converge.Span{ID: "unit:berth-gpu.service", Verb: "start"}, "CSE.ensureGPUDrivers"},
		{converge.Span{ID: "unit:nvidia-device-plugin.service", Verb: "start"}, "CSE.start.nvidia-device-plugin"},
		{converge.Span{ID: "block:/etc/hosts#api-server", Verb: "update"}, "CSE.configPrivateClusterHosts"},
		{converge.Span{ID: "sysctl:vm.swappiness", Verb: "set"}, "CSE.ensureSysctl"},
		{converge.Span{ID: "unit:other.service", Verb: "start"}, "AKSNodeController.Unit"},
		{converge.Span{ID: "names", Verb: "update"}, "AKSNodeController.Names"},
		{converge.Span{ID: "/opt/config.json", Verb: "read", Phase: "wait"}, "AKSNodeController.Read"},
		{converge.Span{ID: "root file system", Verb: "sync", Phase: "wait"}, "AKSNodeController.Sync"},
	} {
		if got := taskOf(c.span); got != c.want {
			t.Errorf("%s is called %s, not %s", c.span.ID, got, c.want)
		}
	}
}

func spanOf(id desired.ID, from, took time.Duration, cause string) converge.Span {
	start := time.Date(2026, 11, 21, 1, 2, 3, 0, time.Local).Add(from)
	return converge.Span{ID: id, Verb: converge.VerbSet, Phase: "commit", Start: start, End: start.Add(took), Error: cause}
}

// TestEventsOfActions: each has the time of its own action; those that failed come
// first, then what took long, and no more than the guest agent has room for.
func TestEventsOfActions(t *testing.T) {
	spans := []converge.Span{spanOf("sysctl:a", 0, time.Millisecond, ""), spanOf("sysctl:b", time.Second, time.Minute, ""), spanOf("sysctl:c", 0, 0, "no such key")}
	endless := spanOf("sysctl:d", 0, 0, "")
	endless.End = time.Time{}
	var got []string
	for _, e := range DidAll(append(spans, endless)) {
		got = append(got, e.Timestamp[11:]+" "+e.OperationID[11:]+" "+e.TaskName+" "+e.EventLevel+" "+strings.SplitN(e.Message, " | ", 2)[0])
	}
	want := []string{
		"01:02:03.000 01:02:03.000 AKS.CSE.ensureSysctl Error Failed: set sysctl:c: no such key",
		"01:02:04.000 01:03:04.000 AKS.CSE.ensureSysctl Informational Completed: set sysctl:b",
		"01:02:03.000 01:02:03.001 AKS.CSE.ensureSysctl Informational Completed: set sysctl:a",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for n := range 400 {
		spans = append(spans, spanOf(desired.ID(fmt.Sprintf("sysctl:%d", n)), 0, 0, ""))
	}
	if n := len(DidAll(spans)); n != 250 {
		t.Errorf("%d events", n)
	}
}

// TestEventsThatHaveRoom: what comes first is written, and the rest is counted.
func TestEventsThatHaveRoom(t *testing.T) {
	h := memory.New()
	for n := range 298 {
		h.Put(fmt.Sprintf("%s/%d.json", EventsDir, n), "{}", 0o644)
	}
	at := time.Now()
	err := WriteEvents(h, Starting("CSE.a", at), Starting("CSE.b", at), Starting("CSE.c", at), Starting("CSE.d", at))
	if err == nil || !strings.Contains(err.Error(), "no room for 2 more") {
		t.Error(err)
	}
	if names, err := h.ReadDir(EventsDir); err != nil || len(names) != 300 {
		t.Errorf("%d files, %v", len(names), err)
	}
}
