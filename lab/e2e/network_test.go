package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/lab"
)

// TestNodesComeAndGo proves that a node keeps its network while others come and
// go: it asks for the gateway all the time and never waits for an answer.
func TestNodesComeAndGo(t *testing.T) {
	l := sharedLab(t)
	stays := addNode(t, l, lab.NodeConfig{Name: "stays", Flavour: lab.Bare, WithoutBerth: true})
	if _, err := stays.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	address := bridgeAddress(t, l)
	const asked = 150 // 15 s
	answers := startPing(t, stays, l.Gateway().String(), asked)
	for i := range 2 {
		plugUnplug(t, l)
		n, err := l.AddNode(within(t, time.Minute), lab.NodeConfig{Name: fmt.Sprintf("comes-%d", i), Flavour: lab.Bare, WithoutBerth: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.WaitFor(within(t, time.Minute), "ping", "-c", "1", "-W", "1", l.Gateway().String()); err != nil {
			t.Fatal(err)
		}
		if err := n.Remove(within(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
		if got := bridgeAddress(t, l); got != address {
			t.Errorf("the bridge's address was %s and is %s", address, got)
		}
	}
	if out := answers(); !strings.Contains(out, fmt.Sprintf("%d packets transmitted, %d received", asked, asked)) {
		t.Errorf("answers are missing:\n%s", out)
	}
}

// startPing asks the gateway ten times a second. The function that it returns
// waits for the end.
func startPing(t *testing.T, n *lab.Node, gateway string, count int) func() string {
	t.Helper()
	ctx := within(t, time.Minute)
	done := make(chan string, 1)
	go func() {
		r, err := n.Exec(ctx, "ping", "-i", "0.1", "-W", "1", "-c", fmt.Sprint(count), gateway)
		done <- fmt.Sprintf("%s%s%v", r.Stdout, r.Stderr, err)
	}()
	return func() string { return <-done }
}

// plugUnplug puts a cable with the lowest address into the bridge for a moment:
// a bridge without an address of its own would take that one.
func plugUnplug(t *testing.T, l *lab.Lab) {
	t.Helper()
	for _, command := range []string{
		"link add lowest address 02:00:00:00:00:01 type veth peer name lowest-end",
		"link set lowest master lab0 up",
		"link del lowest",
	} {
		if out, err := ip(l, command); err != nil {
			t.Fatalf("ip %s: %v\n%s", command, err, out)
		}
	}
}

// bridgeAddress is the hardware address that nodes find the gateway under.
func bridgeAddress(t *testing.T, l *lab.Lab) string {
	t.Helper()
	out, err := ip(l, "-o link show lab0")
	_, after, found := strings.Cut(out, "link/ether ")
	if err != nil || !found {
		t.Fatalf("look at the bridge: %v\n%s", err, out)
	}
	return strings.Fields(after)[0]
}

func ip(l *lab.Lab, command string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := l.Command(ctx, "ip", strings.Fields(command)...).CombinedOutput()
	return string(out), err
}
