package nodeconfigutils_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// bootcmd runs the document's bootcmd below root.
func bootcmd(t *testing.T, root string) {
	t.Helper()
	text, err := nodeconfigutils.CloudConfig(sample(t, "minimal"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		BootCmd [][]string `json:"bootcmd"`
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "#cloud-config\n")), &c); err != nil {
		t.Fatal(err)
	}
	for _, argv := range c.BootCmd {
		for i := range argv {
			argv[i] = strings.ReplaceAll(argv[i], "/opt/azure", root+"/opt/azure")
		}
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

func TestBootcmdMakesTheFilePrivate(t *testing.T) {
	root := t.TempDir()
	config := root + nodeconfigutils.ConfigPath
	for _, step := range []string{"first boot", "reboot with a file that somebody opened"} {
		bootcmd(t, root)
		info, err := os.Stat(config)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v, %v", step, info, err)
		}
		if dir, err := os.Stat(filepath.Dir(config)); err != nil || dir.Mode().Perm() != 0o755 {
			t.Errorf("directory: %v, %v", dir, err)
		}
		if err := os.WriteFile(config, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(config, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(config); err != nil || string(data) != "kept" {
		t.Errorf("reboot changed the file: %q, %v", data, err)
	}
}
