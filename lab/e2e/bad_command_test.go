package e2e

import "testing"

// badPaths are configurations that can't be read.
func badPaths(t *testing.T, m *badMachine) {
	provision := func(path string) []string { return []string{controllerPath, "provision", "--provision-config=" + path} }
	run(t, m.node, "ln", "-sfn", "/run/loop", "/run/loop")
	m.each(t, []badCase{
		{name: "missing", args: provision("/run/none.json"), code: 240, says: []string{"/run/none.json", "no such file"}, hint: "cloud-init"},
		{name: "a directory", args: provision("/run"), code: 240, says: []string{"/run", "is a directory"}, hint: "cloud-init"},
		{name: "unreadable", args: provision("/proc/self/mem"), code: 240, says: []string{"/proc/self/mem"}, hint: "cloud-init"},
		{name: "a link to itself", args: provision("/run/loop"), code: 240, says: []string{"/run/loop"}, hint: "cloud-init"},
		{name: "none named", args: []string{controllerPath, "provision"}, code: 240, says: []string{"--provision-config"}, hint: "--provision-config="},
		{name: "a script", args: []string{controllerPath, "provision", "--nbc-cmd=/run/x.sh"}, code: 250, says: []string{"--nbc-cmd"}, hint: "aksnodeconfig.v1"},
	})
}

// badUser provisions without being root. The earlier result belongs to root and
// stays.
func badUser(t *testing.T, m *badMachine) {
	m.configure(t, m.document(t))
	before, kept := m.look(t), m.outcome(t, "")
	r := m.exec(t, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/local/bin/berth", "provision", "--provision-config="+configPath)
	if r.Code != 254 || !containsAll(string(r.Stderr), "ERR_WRITE_FAIL", "user 65534", "hint: Run it as root") {
		t.Errorf("exit code %d\n%s", r.Code, r.Stderr)
	}
	if after := m.outcome(t, ""); after != kept {
		t.Errorf("the result has changed: %+v", after)
	}
	sameLines(t, before, m.look(t))
}
