package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// TestBadCustomData boots machines with CustomData that can't work; the
// extension waits meanwhile and has to learn why. What follows meets machines on
// which provisioning has failed.
func TestBadCustomData(t *testing.T) {
	parallel(t)
	l := sharedLab(t)
	darken(t, l)
	strange := badCase{name: "wrong CA", code: 253, field: "api_server_config.api_server_name", says: []string{"unknown authority"}, hint: "CA"}
	m := bootBad(t, l, "bad-ca", customData(t, nodeConfig(t, l, strangeCA(t))), strange)
	t.Run("killed", func(t *testing.T) { killedEachTime(t, m) })
	t.Run("stopped", func(t *testing.T) { stopped(t, m) })
	cut := badCase{name: "truncated", code: 240, says: []string{"line 4, column "}, hint: "Correct"}
	m = bootBad(t, l, "bad-cut", plainUserData(truncated(document(t, nodeConfig(t, l)))), cut)
	t.Run("result is damaged", func(t *testing.T) { damagedResults(t, m) })
	t.Run("image is prepared", func(t *testing.T) { prepared(t, m) })
}

// plainUserData brings a document as the plain cloud-config does.
func plainUserData(doc []byte) []byte {
	return fmt.Appendf(nil, "#cloud-config\nwrite_files:\n- path: %s\n  permissions: \"0600\"\n  encoding: b64\n  content: %s\n",
		configPath, base64.StdEncoding.EncodeToString(doc))
}

// bootBad boots a machine, and wants the extension to end with the case's
// failure, and nothing changed but what a refusal leaves.
func bootBad(t *testing.T, l *lab.Lab, name string, userData []byte, c badCase) *badMachine {
	t.Helper()
	m := &badMachine{l, addNode(t, l, lab.NodeConfig{Name: name, UserData: userData})}
	start := time.Now()
	r := runCSE(t, m.node)()
	t.Logf("%s: the extension ended %.1f s after power on", name, time.Since(start).Seconds())
	if r.Err != nil || r.Code != c.code {
		t.Fatalf("extension: %v, exit code %d\n%s", r.Err, r.Code, r.Message)
	}
	if s, err := nodeconfigutils.ParseCSEStatus(r.Message); err != nil || s.ExitCode != fmt.Sprint(c.code) {
		t.Errorf("message: %v\n%s", err, r.Message)
	}
	c.checkOutcome(t, m.outcome(t, ""))
	if _, err := m.node.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/etc/kubernetes", "/etc/systemd/system/kubelet.service", "/var/lib/kubelet/kubeconfig"} {
		if m.node.Exists(p) {
			t.Errorf("%s exists", p)
		}
	}
	if r := m.exec(t, "systemctl", "is-active", "containerd", "kubelet"); strings.Contains(string(r.Stdout), "\nactive") || bytes.HasPrefix(r.Stdout, []byte("active")) {
		t.Errorf("units: %s", r.Stdout)
	}
	return m
}

// again forgets the result and starts the unit with a configuration whose API
// server never answers.
func (m *badMachine) again(t *testing.T) {
	t.Helper()
	m.configure(t, m.document(t, toDark(60)))
	run(t, m.node, "rm", "-f", sentinelPath, resultPath)
	run(t, m.node, "systemctl", "stop", nodeconfigutils.Unit)
	run(t, m.node, "rm", "-f", sentinelPath, resultPath)
	run(t, m.node, "systemctl", "reset-failed", nodeconfigutils.Unit)
	before := logged(m.node)
	run(t, m.node, "systemctl", "start", nodeconfigutils.Unit)
	eventually(t, "the run asks for the server", 10*time.Second, func() bool { return logged(m.node) > before+3 })
}

// killedEachTime kills the run as often as systemd starts it: the last time, the
// unit's ExecStopPost reports, and whoever waits learns it at once.
func killedEachTime(t *testing.T, m *badMachine) {
	m.again(t)
	type ending struct {
		result lab.Result
		err    error
	}
	waiting, ctx := make(chan ending, 1), within(t, 2*time.Minute)
	go func() {
		r, err := m.node.Exec(ctx, controllerPath, "provision-wait")
		waiting <- ending{r, err}
	}()
	kills := m.exec(t, "sh", "-c", `n=0; last=0
while [ ! -e `+sentinelPath+` ] && [ $n -lt 20 ]; do
  pid=$(systemctl show -P MainPID `+nodeconfigutils.Unit+`)
  if [ "$pid" != 0 ] && [ "$pid" != "$last" ]; then sleep 0.3; kill -9 $pid; last=$pid; n=$((n+1)); fi
  sleep 0.05
done; echo $n`)
	e := <-waiting
	if e.err != nil {
		t.Fatal(e.err)
	}
	o := checkPrinted(t, e.result, 137)
	if strings.TrimSpace(string(kills.Stdout)) != "5" || o.Berth.Code != "ERR_PROVISION_KILLED" || o.Berth.Hint == "" || !strings.Contains(o.Error, "signal") {
		t.Errorf("%s kills, result %+v", kills.Stdout, o)
	}
}

// stopped stops the unit in its midst; started again, it goes on.
func stopped(t *testing.T, m *badMachine) {
	m.again(t)
	run(t, m.node, "systemctl", "stop", nodeconfigutils.Unit)
	if o := m.wait(t, 247); o.Berth.Code != "ERR_PROVISION_INTERRUPTED" || o.Berth.Hint == "" {
		t.Errorf("result %+v", o)
	}
	m.configure(t, m.document(t))
	// Whoever waits asks while the old result is still there: the start is only queued.
	r := m.exec(t, "sh", "-c", "systemctl start --no-block "+nodeconfigutils.Unit+" && exec "+controllerPath+" provision-wait")
	checkPrinted(t, r, 0)
	if _, err := m.lab.WaitNodeReady(within(t, time.Minute), m.node.Name); err != nil {
		t.Fatal(err)
	}
	planIsEmpty(t, m.lab, m.node)
	saysWhyNot(t, m)
}

// saysWhyNot starts the unit of a machine whose provisioning has ended: systemctl status
// tells that nothing was done, and the command that repeats it.
func saysWhyNot(t *testing.T, m *badMachine) {
	run(t, m.node, "systemctl", "restart", nodeconfigutils.Unit)
	says := ""
	eventually(t, "the unit says why it did nothing", time.Minute, func() bool {
		says = run(t, m.node, "systemctl", "show", "-P", "StatusText", nodeconfigutils.Unit)
		return strings.Contains(says, "nothing to do")
	})
	if !containsAll(says, "exit code 0", sentinelPath, "provision --provision-config="+configPath) {
		t.Errorf("status %q", says)
	}
}

// damagedResults are results that a sentinel promises and that can't be used.
func damagedResults(t *testing.T, m *badMachine) {
	whole, err := m.node.ReadFile(resultPath)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"partial": whole[:len(whole)/2], "empty": {}, "garbage": []byte("\x00\xff garbage"), "another document": []byte(`{"a": 1}`),
		"no number": []byte(`{"ExitCode": "many"}`),
	} {
		t.Run(name, func(t *testing.T) {
			if err := m.node.WriteFile(resultPath, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if o := m.wait(t, 124); !containsAll(o.Error, sentinelPath, nodeconfigutils.Unit) || o.Berth.Hint == "" {
				t.Errorf("result %+v", o)
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		run(t, m.node, "rm", resultPath)
		if o := m.wait(t, 124); !containsAll(o.Error, resultPath, "no such file", nodeconfigutils.Unit) {
			t.Errorf("result %+v", o)
		}
	})
	t.Run("published", func(t *testing.T) {
		if err := m.node.WriteFile(resultPath, []byte(`{"ExitCode": "51", "Error": "published"}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := m.node.WriteFile(sentinelPath, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if o := m.wait(t, 51); o.Error != "published" {
			t.Errorf("result %+v", o)
		}
	})
}

// prepared makes the machine an image first and then a node: each ends the wait.
func prepared(t *testing.T, m *badMachine) {
	imageBuild := func(c *aksnodeconfigv1.Configuration) { c.PreProvisionOnly = true }
	if r := m.provision(t, badCase{name: "prepare", config: m.document(t, imageBuild)}); r.Code != 0 {
		t.Fatalf("exit code %d\n%s", r.Code, r.Stderr)
	}
	if o := m.wait(t, 0); o.Berth.Milestone != "image-built" {
		t.Errorf("milestone %q", o.Berth.Milestone)
	}
	if m.node.Exists(sentinelPath) || !m.node.Exists("/opt/azure/containers/base_prep.complete") {
		t.Error("wrong sentinel")
	}
	if r := m.provision(t, badCase{name: "join", config: m.document(t)}); r.Code != 0 {
		t.Fatalf("exit code %d\n%s", r.Code, r.Stderr)
	}
	if o := m.wait(t, 0); o.Berth.Milestone != "registered" && o.Berth.Milestone != "ready" { // which it may be by then
		t.Errorf("milestone %q", o.Berth.Milestone)
	}
	if _, err := m.lab.WaitNodeReady(within(t, time.Minute), m.node.Name); err != nil {
		t.Fatal(err)
	}
}
