package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// victim is the environment variable that makes this program a lab's owner
// that waits to be killed.
const victim = "BERTH_LAB_VICTIM"

func beVictim(name string) int {
	ctx := context.Background()
	l, err := lab.Start(ctx, lab.Config{Name: name, WithoutBerth: true})
	if err == nil {
		_, err = l.AddNode(ctx, lab.NodeConfig{Name: "victim", Flavour: lab.Bare, WithoutBerth: true, UserData: []byte("#cloud-config\n{}\n")})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("up")
	select {}
}

// TestLabDiesWithItsOwner kills a lab's owner and looks for leftovers.
func TestLabDiesWithItsOwner(t *testing.T) {
	name := fmt.Sprintf("victim-%d", os.Getpid())
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), victim+"="+name)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "up\n" {
		t.Fatalf("victim said %q, %v", line, err)
	}
	if len(leftovers(t, name)) == 0 {
		t.Fatal("a running lab has no traces: the test looks in the wrong directories")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	deadline := time.Now().Add(20 * time.Second)
	for left := leftovers(t, name); len(left) > 0; left = leftovers(t, name) {
		if time.Now().After(deadline) {
			t.Fatalf("left after the kill:\n%s", strings.Join(left, "\n"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// leftovers lists what is on the host of a lab: mounts, processes, files.
func leftovers(t *testing.T, name string) []string {
	t.Helper()
	var left []string
	for _, p := range []string{"/run/berth-lab/" + name, "/var/lib/berth-lab/" + name, "/run/netns/berth-lab-" + name} {
		if _, err := os.Stat(p); err == nil {
			left = append(left, p)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range strings.Split(string(mounts), "\n") {
		if strings.Contains(m, "/"+name+"/") {
			left = append(left, m)
		}
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range lines {
		if b, _ := os.ReadFile(p); strings.Contains(string(b), "/"+name+"/") || strings.Contains(string(b), "netns/berth-lab-"+name) {
			left = append(left, p+" "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return left
}
