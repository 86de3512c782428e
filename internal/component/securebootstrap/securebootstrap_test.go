package securebootstrap

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

func TestResources(t *testing.T) {
	full := Settings{
		Timeout: 2 * time.Minute,
		Server:  "cluster.example", Resource: "resource", ClientID: "client", URL: "https://p.example/client.tar.gz", Environment: "/etc/kubernetes/akscustom.json",
		Timeouts: map[string]string{"get-nonce-timeout": "5s", "validate-kubeconfig-timeout": "1m", "unknown": "x"},
	}
	for name, s := range map[string]Settings{"full": full, "plain": {Server: "10.0.0.1", Timeout: 2 * time.Minute}} {
		t.Run(name, func(t *testing.T) {
			st := golden.State(t, Resources(s))
			golden.Check(t, name+".env", string(golden.File(t, st, settings).Content.Data()))
			golden.Check(t, Unit, string(golden.File(t, st, unitFile).Content.Data()))
			golden.Check(t, "drop-in.conf", string(golden.File(t, st, dropIn).Content.Data()))
			a := st.Lookup(desired.ArtifactID(Artifact)).(*desired.Artifact)
			if (len(a.URLs) > 0) != (s.URL != "") || (a.Files[0].Member != "") != (s.URL != "") {
				t.Errorf("the program comes from %v, as %q", a.URLs, a.Files[0].Member)
			}
			u := st.Lookup(desired.UnitID(Unit)).(*desired.Unit)
			if !slices.Contains(u.After, a.ID()) || u.Activation != desired.Started {
				t.Errorf("%+v", u)
			}
		})
	}
}

// TestLog: the program does not make the directory of its log, and a fresh machine has none.
func TestLog(t *testing.T) {
	st := golden.State(t, Resources(Settings{Server: "10.0.0.1", Timeout: time.Minute}))
	text := string(golden.File(t, st, unitFile).Content.Data())
	_, dir, _ := strings.Cut(text, "\nLogsDirectory=")
	dir, _, _ = strings.Cut(dir, "\n")
	if dir == "" || path.Dir(log) != "/var/log/"+dir {
		t.Errorf("the log is %s, and the unit makes /var/log/%s:\n%s", log, dir, text)
	}
}
