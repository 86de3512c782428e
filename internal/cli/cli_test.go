package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
	"github.com/berth-dev/berth/internal/provision"
	"github.com/berth-dev/berth/internal/report"
)

var update = flag.Bool("update", false, "write goldens")

const sample = "../contract/aks/testdata/minimal.json"

// invoke runs a command line on a machine in memory.
func invoke(h host.Host, args ...string) (code int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	e := &env{start: time.Now(), out: &out, err: &errOut, width: 100, open: func(string) (host.Host, error) { return h, nil }}
	return e.run(context.Background(), args), out.String(), errOut.String()
}

// invokeIn runs a command under a context and returns what it prints to stderr.
func invokeIn(ctx context.Context, h host.Host, args ...string) (code int, stderr string) {
	var errOut bytes.Buffer
	e := &env{start: time.Now(), out: io.Discard, err: &errOut, width: 100, open: func(string) (host.Host, error) { return h, nil }}
	return e.run(ctx, args), errOut.String()
}

func TestCommandLine(t *testing.T) {
	bad := path.Join(t.TempDir(), "bad.json")
	pod := path.Join(t.TempDir(), "pod.yaml")
	write(t, bad, `{"version":"v1","cse_timeout":"x"}`)
	write(t, pod, "apiVersion: v1\nkind: Pod\n")
	cases := map[string]struct {
		args   string
		code   int
		stdout string
		stderr string
	}{
		"nothing":                   {"berth", 1, "", "Usage:"},
		"unknown command":           {"berth frob", 1, "", `unknown command "frob"`},
		"unknown command elsewhere": {"/opt/azure/containers/aks-node-controller frob", 1, "", "aks-node-controller [command]"},
		"not of that name":          {"aks-node-controller plan", 1, "", `unknown command "plan"`},
		"a hotfix binary":           {"aks-node-controller-hotfix version", 0, Version(), ""},
		"unknown flag":              {"aks-node-controller provision --frob", 1, "", "unknown flag: --frob"},
		"version":                   {"aks-node-controller version extra", 0, Version(), ""},
		"provision x":               {"berth provision --provision-config=x extra", 1, "", `berth provision takes no argument "extra"`},
		"provision-wait x":          {"berth provision-wait extra", 1, "", `berth provision-wait takes no argument "extra"`},
		"version x":                 {"berth version extra", 1, "", `berth version takes no argument "extra"`},
		"provision x as published":  {"aks-node-controller provision --dry-run --provision-config " + bad + " extra", 240, "", "cse_timeout"},
		"-v":                        {"aks-node-controller -v", 0, Version(), ""},
		"--version":                 {"berth --version", 0, Version(), ""},
		"--version x":               {"gardener-node-agent --version extra", 0, Version(), ""},
		"help":                      {"berth help plan", 0, "would change", ""},
		"check-hotfix":              {"aks-node-controller check-hotfix --odd 1", 0, "", "nothing to check"},
		"download-hotfix":           {"aks-node-controller download-hotfix", 0, "", "nothing to install"},
		"download-hotfix x":         {"aks-node-controller download-hotfix x", 1, "", "no arguments"},
		"bad milestone":             {"berth provision --provision-config=x --wait-for=tea", 1, "", "registered or ready"},
		"dry run of commands":       {"berth provision --dry-run --nbc-cmd x --provision-config " + sample, 250, "", "hint: Send the aksnodeconfig.v1 document"},
		"dry run of nothing":        {"berth provision --dry-run", 1, "", "--provision-config is required"},
		"render refused":            {"berth render -f " + bad, 3, "", "cse_timeout"},
		"plan of a pod":             {"berth plan -f " + pod, 3, "", "Pod"},
		"nearly a command":          {"berth plna", 1, "", `did you mean plan?`},
		"nearly, with flags":        {"berth aplly -f x", 1, "", `error: unknown command "aplly": did you mean apply?`},
		"no command, with flags":    {"berth bogus --flag", 1, "", `error: unknown command "bogus"`},
		"flag of no command":        {"berth --flag bogus", 1, "", `error: unknown flag: --flag`},
		"nearly below a command":    {"berth bundle crate --image x", 1, "", `error: unknown command "crate": did you mean create?`},
		"verb that is none":         {"berth node foo", 1, "", `error: unknown command "foo"`},
		"no verb":                   {"berth node", 1, "", "a command is missing"},
		"help of a command":         {"aks-node-controller help provision", 0, "--wait-for", ""},
		"help of nothing known":     {"berth help frob", 1, "", `unknown command "frob"`},
		"help of an argument":       {"berth help plan x", 1, "", `unknown command "x"`},
		"exit codes in the help":    {"berth --help", 0, "2 changes are pending", ""},
		"argument too many":         {"berth plan -f x extra", 1, "", `berth plan takes no argument "extra"`},
		"plan of an empty root":     {"berth plan -f x --root=", 1, "", "--root is empty"},
		"dry run refused":           {"berth provision --dry-run --provision-config " + bad, 240, "", "ERR_AKS_NODE_CONTROLLER_ERROR"},
		"render no file":            {"berth render", 1, "", "-f FILE is missing"},
		"render odd format":         {"berth render -f " + sample + " -o xml", 1, "", "-o xml: must be json or yaml"},
		"apply no such file":        {"berth apply -f /nowhere/x", 1, "", "/nowhere/x"},
		"timeline of nothing":       {"berth timeline", 1, "", report.TimelinePath},
		"agent without a config":    {"berth agent --config-dir /nowhere", 1, "", "look for the agent's configuration"},
		"pause":                     {"berth agent pause --for 1h", 0, "", "repairs rest until"},
		"end of a pause":            {"berth agent pause --for 0s", 0, "", "repairs go on"},
		"pause for how long":        {"berth agent pause", 1, "", "--for DURATION must be from 0s to 168h0m0s"},
		"pause for ever":            {"berth agent pause --for 9000h", 1, "", "--for DURATION must be"},
		"reset of nothing":          {"gardener-node-agent reset", 0, "", "the agent is gone"},
		"agent x":                   {"berth agent x", 1, "", "berth agent takes no argument"},
		"the published agent":       {"/opt/bin/gardener-node-agent --config-dir /nowhere", 1, "", "look for the agent's configuration"},
		"the published bootstrap":   {"gardener-node-agent bootstrap --config-dir /nowhere", 1, "", "look for the agent's configuration"},
		"not of the agent":          {"gardener-node-agent plan", 1, "", "takes no argument \"plan\""},
		"options":                   {"berth config view", 0, "policy: repair", ""},
		"options as JSON":           {"berth config view -o json", 0, `"policy": "repair"`, ""},
		"options as XML":            {"berth config view -o xml", 1, "", "must be json or yaml"},
		"config of what":            {"berth config", 1, "", "a command is missing"},
		"rbac":                      {"berth rbac --secret a,b --token-secret c", 0, "resourceNames:\n  - a\n  - b\n  - c\n", ""},
		"rbac of nothing":           {"berth rbac", 1, "", "secret: Required"},
		"rbac of a path":            {"berth rbac --secret a/b", 1, "", "secret: Invalid value: \"a/b\""},
		"approver of no cluster":    {"berth approver --machine a", 1, "", "--kubeconfig is missing"},
		"approver of no machine":    {"berth approver --kubeconfig /x", 1, "", "no machines are named"},
		"approver of a bad pattern": {"berth approver --kubeconfig /x --machine [a", 1, "", `"[a" is no pattern`},
		"approver without its file": {"berth approver --kubeconfig /x --machine a", 1, "", "read /x"},
		"rbac x":                    {"berth rbac --secret a x", 1, "", "takes no argument"},
		"node":                      {"berth node result", 0, "", "starts again"},
		"no packet filter":          {"aks-node-controller node firewall", 1, "", "/etc/berth/packet-filter.json"},
		"preflight of nothing":      {"berth preflight", 1, "", "-f FILE is missing"},
		"preflight refused":         {"berth preflight -f " + bad, 3, "", "cse_timeout"},
		"preflight ignores nothing": {"berth preflight -f x --ignore frob", 1, "", "--ignore frob: there is no such check"},
		"doctor as XML":             {"berth doctor -o xml", 1, "", "must be"},
		"doctor x":                  {"berth doctor x", 1, "", "takes no argument"},
		"no GPU settings":           {"aks-node-controller node gpu", 1, "", "/etc/berth/gpu.json"},
		"GPU settings x":            {"berth node gpu x", 1, "", "takes no argument"},
		"packet filter x":           {"berth node firewall x", 1, "", "takes no argument"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			h.Put("/proc/uptime", "60.00 7.00\n", 0o444)
			code, stdout, stderr := invoke(h, strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("code %d\nstdout: %s\nstderr: %s", code, stdout, stderr)
			}
		})
	}
}

// TestManyErrorsHaveAShortField: the errors name their fields, each on its line.
func TestManyErrorsHaveAShortField(t *testing.T) {
	bad := path.Join(t.TempDir(), "bad.json")
	write(t, bad, `{"version":"v1"}`)
	_, _, stderr := invoke(memory.New(), "berth", "render", "-f", bad)
	_, line, _ := strings.Cut(stderr, "\n  field: ")
	line, _, _ = strings.Cut(line, "\n")
	if !strings.Contains(stderr, "tls_bootstrapping_token") || !strings.HasSuffix(line, " more") || strings.Count(line, ",") != 2 {
		t.Errorf("field: %q\n%s", line, stderr)
	}
}

func TestRenderPrintsItsThreeKeys(t *testing.T) {
	h := memory.New()
	h.Value("/proc/sys/kernel/hostname", "node-1\n")
	code, stdout, stderr := invoke(h, "berth", "render", "-f", sample)
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(stdout), &keys); err != nil || code != 0 {
		t.Fatalf("code %d, %v: %s", code, err, stderr)
	}
	for _, k := range []string{"state", "unused", "unhandled"} {
		if len(keys[k]) == 0 || string(keys[k]) == "null" {
			t.Errorf("no %s", k)
		}
	}
	if strings.Contains(stdout, "0123456789abcdef") {
		t.Error("the token is printed")
	}
	if code, yaml, _ := invoke(h, "berth", "render", "-f", sample, "-o", "yaml"); code != 0 || !strings.Contains(yaml, "unhandled: []") {
		t.Errorf("code %d: %s", code, yaml)
	}
	var out bytes.Buffer // the library writes no such character
	if err := encode(&out, "yaml", map[string]string{"a": "\x7f"}); err != nil || out.String() != "a: \"\\x7F\"\n" {
		t.Errorf("%q (%v)", out.String(), err)
	}
}

func TestPlanCounts(t *testing.T) {
	code, stdout, stderr := invoke(memory.New(), "berth", "plan", "-f", sample, "--root", "/mnt")
	if code != exitcode.Pending || !strings.Contains(stdout, "create file:/etc/kubernetes/certs/ca.crt: absent") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
	code, stdout, _ = invoke(memory.New(), "berth", "plan", "-f", sample, "--root", "/mnt", "-o", "json")
	var p struct {
		Actions   []converge.Action
		Unhandled []string
	}
	if err := json.Unmarshal([]byte(stdout), &p); err != nil || code != exitcode.Pending || len(p.Actions) == 0 || p.Unhandled == nil {
		t.Errorf("code %d, %v: %s", code, err, stdout)
	}
}

// A machine that lacks what nobody can fetch still gets its plan printed, and the
// code that the run would have.
func TestPlanWithoutPrograms(t *testing.T) {
	for args, want := range map[string]int{
		"berth plan -f " + sample:                                exitcode.Failed,
		"berth provision --dry-run --provision-config " + sample: exitcode.CNIVersion,
	} {
		h := memory.New()
		h.Value("/proc/sys/kernel/hostname", "node-1\n")
		code, stdout, stderr := invoke(h, strings.Fields(args)...)
		if code != want || !strings.Contains(stdout, "create file:/etc/kubernetes/certs/ca.crt: absent") ||
			!strings.Contains(stdout, "(blocked: the document names no address to fetch it from)") || !strings.Contains(stderr, "names no address") {
			t.Errorf("%s: code %d\nstdout: %s\nstderr: %s", args, code, stdout, stderr)
		}
	}
}

func TestApplyThenPlanIsEmpty(t *testing.T) {
	h := memory.New()
	code, _, stderr := invoke(h, "berth", "apply", "-f", sample, "--root", "/mnt")
	if code != 0 || !strings.Contains(stderr, "applied") || strings.Contains(stderr, "\x1b") {
		t.Fatalf("code %d: %s", code, stderr)
	}
	if code, stdout, _ := invoke(h, "berth", "plan", "-f", sample, "--root", "/mnt"); code != 0 || !strings.HasSuffix(stdout, "no changes\n") {
		t.Errorf("code %d: %s", code, stdout)
	}
	for format, want := range map[string]string{"text": "berth apply", "json": `"spans"`, "svg": "<svg"} {
		if code, stdout, _ := invoke(h, "berth", "timeline", "-o", format); code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("%s: code %d: %s", format, code, stdout)
		}
	}
}

// TestApplySaysThatItKeptSomething: a file that somebody edited is kept when the
// document no longer asks for it, and a script learns that from the exit code.
func TestApplySaysThatItKeptSomething(t *testing.T) {
	const limits = "/etc/systemd/system/containerd.service.d/set_ulimits.conf"
	h := memory.New()
	document, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	with := path.Join(t.TempDir(), "with.json")
	write(t, with, strings.Replace(string(document), "{", `{"custom_linux_os_config":{"ulimit_config":{"no_file":"65536"}},`, 1))
	if code, _, stderr := invoke(h, "berth", "apply", "-f", with, "--root", "/mnt"); code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	if _, err := h.Lstat(limits); err != nil {
		t.Fatal(err)
	}
	h.Put(limits, "[Service]\n", 0o644)
	code, _, stderr := invoke(h, "berth", "apply", "-f", sample, "--root", "/mnt")
	if code != exitcode.Kept || !strings.Contains(stderr, limits+" is no longer wanted and is kept") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if code, stdout, _ := invoke(h, "berth", "timeline"); code != 0 || !strings.Contains(stdout, "exit code 4") {
		t.Errorf("code %d: %s", code, stdout)
	}
}

// TestDryRunNamesNoLog: it writes none.
func TestDryRunNamesNoLog(t *testing.T) {
	bad := path.Join(t.TempDir(), "bad.json")
	write(t, bad, `{"version":"v1","cse_timeout":"x"}`)
	for file, says := range map[string]string{"/nowhere/x": "no such file", bad: "hint: Correct the fields that are named.\n"} {
		code, _, stderr := invoke(memory.New(), "berth", "provision", "--dry-run", "--provision-config", file)
		if code != exitcode.Internal || !strings.Contains(stderr, says) || strings.Contains(stderr, report.LogPath) {
			t.Errorf("code %d: %s", code, stderr)
		}
	}
}

// TestAnInterruptedCommandSpeaksOfItself, and not of provisioning.
func TestAnInterruptedCommandSpeaksOfItself(t *testing.T) {
	var errOut bytes.Buffer
	e := &env{err: &errOut}
	code := e.exit(fmt.Errorf("%w by signal 2 (interrupt)", exitcode.ErrInterrupted))
	if code != exitcode.CommandInterrupted || errOut.String() != "error: told to stop by signal 2 (interrupt)\n" {
		t.Errorf("code %d: %s", code, errOut.String())
	}
}

func TestProvisionRefusesCommands(t *testing.T) {
	for name, more := range map[string][]string{"alone": nil, "beside a configuration": {"--provision-config=" + report.ConfigPath}} {
		t.Run(name, func(t *testing.T) { refusesCommands(t, more) })
	}
}

func refusesCommands(t *testing.T, more []string) {
	h := memory.New()
	h.Put(report.ConfigPath, `{"version":"v1"}`, 0o600)
	code, _, stderr := invoke(h, append([]string{"aks-node-controller", "provision", "--nbc-cmd=/opt/x.sh"}, more...)...)
	if code != exitcode.CommandDocument || !strings.Contains(stderr, "hint: ") {
		t.Errorf("code %d: %s", code, stderr)
	}
	code, stdout, _ := invoke(h, "aks-node-controller", "provision-wait")
	if code != exitcode.CommandDocument || !strings.Contains(stdout, "ERR_NBC_CMD_UNSUPPORTED") {
		t.Errorf("code %d: %s", code, stdout)
	}
	if code, stdout, _ := invoke(h, "berth", "status"); code != 0 || !strings.Contains(stdout, "failed with ERR_NBC_CMD_UNSUPPORTED (250)") {
		t.Errorf("code %d: %s", code, stdout)
	}
}

func TestExitCodes(t *testing.T) {
	_, refused := provision.Decode([]byte(`{}`))
	for want, err := range map[int]error{
		0: nil, exitcode.Failed: errors.New("x"), exitcode.Refused: refused, exitcode.Pending: told(2), exitcode.CommandInterrupted: exitcode.ErrInterrupted,
	} {
		e := &env{err: io.Discard}
		if got := e.exit(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

func TestPages(t *testing.T) {
	e := &env{}
	for _, c := range e.berth().Commands() {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		file := "../../docs/commands/" + c.Name() + ".md"
		got := page(c)
		if *update {
			write(t, file, got)
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s is stale (-file +now):\n%s", file, d)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestProvisionFromHere: a configuration may be named as seen from the present directory.
func TestProvisionFromHere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	h := memory.New()
	h.PutDir(dir)
	h.Put(dir+"/node.json", "{", 0o600)
	if code, _, stderr := invoke(h, "berth", "provision", "--provision-config=node.json"); code != exitcode.Internal || !strings.Contains(stderr, "refused: line 1") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// TestFilesFromHere: each file that a command line names may be named as seen from the
// present directory.
func TestFilesFromHere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, args := range []string{
		"approver --machine a --kubeconfig own", "agent --config-dir own", "agent bootstrap --config-dir own", "token --identity own", "leave --kubeconfig own",
	} {
		if _, _, stderr := invoke(memory.New(), append([]string{"berth"}, strings.Fields(args)...)...); !strings.Contains(stderr, dir+"/own: no such file") {
			t.Errorf("%s: %s", args, stderr)
		}
	}
}

func TestProvisionIsForRoot(t *testing.T) {
	var errOut bytes.Buffer
	e := &env{start: time.Now(), err: &errOut, uid: 1000, open: func(string) (host.Host, error) {
		t.Error("the machine was touched")
		return memory.New(), nil
	}}
	if code := e.run(t.Context(), []string{"berth", "provision", "--provision-config=/x"}); code != exitcode.Write {
		t.Errorf("code %d", code)
	}
	if text := errOut.String(); !strings.Contains(text, "user 1000") || !strings.Contains(text, "hint: Run it as root.") {
		t.Errorf("stderr %s", text)
	}
}
