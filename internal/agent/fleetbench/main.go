// Command fleetbench runs many agents against one API server, each with a machine in
// memory and a connection of its own. It prints "ready" when all have their
// certificates. A line "jitter 60s" on its standard input changes their options, as an
// operator does who writes the file; "done" says that all have it. Its end is the end
// of its standard input.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/cli"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// machine is a machine in memory that has the real time.
type machine struct{ *memory.Host }

// Now implements host.Clock.
func (machine) Now() time.Time { return time.Now() }

// Sleep implements host.Clock.
func (machine) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	configDir = "/etc/fleet"
	caFile    = configDir + "/ca.crt"
	// apart is between two agents that begin: handshakes of many at once take each
	// other's time until they fail.
	apart = 20 * time.Millisecond
)

type fleet struct {
	server, token, prefix, config string
	ca                            []byte
	machines                      []machine
}

func main() {
	f := &fleet{}
	n := flag.Int("agents", 0, "how many `agents`")
	ca := flag.String("ca", "", "the `file` of the cluster's CA")
	secret := flag.String("secret", "", "the `name` of the Secret")
	flag.StringVar(&f.server, "server", "", "the API server's `URL`")
	flag.StringVar(&f.token, "token", "", "a bootstrap `token`")
	flag.StringVar(&f.prefix, "prefix", "", "Nodes are called by this `text` and a number from 0")
	flag.Parse()
	f.config = fmt.Sprintf("apiVersion: %s\nkind: %s\nlogLevel: error\napiServer: {server: %q, caFile: %s}\n"+
		"controllers:\n  operatingSystemConfig: {secretName: %s, kubernetesVersion: 1.36.3}\n", config.APIVersion, config.Kind, f.server, caFile, *secret)
	ctx, cancel := context.WithCancel(context.Background())
	err := f.run(ctx, *ca, *n)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (f *fleet) run(ctx context.Context, ca string, n int) (err error) {
	if f.ca, err = os.ReadFile(ca); err != nil {
		return fmt.Errorf("read the cluster's CA: %w", err)
	}
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer all.Wait()
	defer cancel()
	for i := range n {
		m := f.machine(i)
		f.machines = append(f.machines, m)
		all.Go(func() { keep(ctx, m) })
		if err := certified(ctx, m); err != nil {
			return fmt.Errorf("agent %d: %w", i, err)
		}
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		window, ok := strings.CutPrefix(in.Text(), "jitter ")
		if !ok {
			return fmt.Errorf("want jitter DURATION, not %q", in.Text())
		}
		if err := f.jitter(ctx, window); err != nil {
			return err
		}
		fmt.Println("done")
	}
	return in.Err()
}

func (f *fleet) machine(i int) machine {
	h := memory.New()
	name := fmt.Sprintf("%s%d", f.prefix, i)
	for path, text := range map[string]string{
		"/proc/sys/kernel/hostname": name, config.MachineName: name, config.BootstrapToken: f.token, caFile: string(f.ca),
		configDir + "/config-v0.0.1.yaml": f.config, config.OptionsPath: "jitter: 0s\n",
	} {
		h.Put(path, text, 0o600)
	}
	h.Put("/usr/bin/sleep", "", 0o755)
	return machine{h}
}

// keep runs an agent until ctx ends, anew when it asks for that, as systemd does.
func keep(ctx context.Context, m machine) {
	for ctx.Err() == nil {
		a, err := cli.NewAgent(m, os.Stderr, configDir)
		if err == nil {
			err = a.Run(ctx)
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "an agent ended:", err)
			_ = m.Sleep(ctx, time.Second) // it ends early with ctx alone
		}
	}
}

// certified waits until an agent has its certificate.
func certified(ctx context.Context, m machine) error {
	look := time.NewTicker(apart / 4)
	defer look.Stop()
	late := time.After(time.Minute)
	for {
		if _, err := m.Lstat(config.Kubeconfig); err == nil {
			return nil
		}
		select {
		case <-look.C:
		case <-late:
			return fmt.Errorf("it got no certificate within a minute")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *fleet) jitter(ctx context.Context, window string) error {
	for _, m := range f.machines {
		if err := host.WriteFile(m, config.OptionsPath, []byte("jitter: "+window+"\n"), host.Attributes{Mode: 0o600}); err != nil {
			return err
		}
		if err := m.Sleep(ctx, apart); err != nil {
			return err
		}
	}
	return nil
}
