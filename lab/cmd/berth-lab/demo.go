package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

const demoNode = "demo-node"

func (a *app) demo() *cobra.Command {
	return &cobra.Command{Use: "demo", Short: "Boot a node from CustomData and show it Ready; the lab stays up", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Hour)
			defer cancel()
			return runDemo(ctx, "demo")
		}}
}

func runDemo(ctx context.Context, name string) error {
	if err := lab.Down(ctx, name); err != nil {
		return fmt.Errorf("take down the last demo: %w", err)
	}
	l, err := lab.Start(ctx, lab.Config{Name: name, Stay: true})
	if err != nil {
		return err
	}
	if err := demonstrate(ctx, l); err != nil {
		return fmt.Errorf("%w\nthe lab is left up; stop it with: make demo-down", err)
	}
	fmt.Printf("\nThe lab stays up. Look around:  cd lab && go run ./cmd/berth-lab --lab %s kubectl get pods -A\nStop it:  make demo-down\n", name)
	return nil
}

func demonstrate(ctx context.Context, l *lab.Lab) error {
	cfg, err := l.NodeConfiguration()
	if err != nil {
		return err
	}
	boot, err := nodeconfigutils.GetNodeBootstrapping(cfg)
	if err != nil {
		return err
	}
	userData, err := base64.StdEncoding.DecodeString(boot.CustomData)
	if err != nil {
		return err
	}
	if err := l.AwaitSigner(ctx); err != nil {
		return err
	}
	start := time.Now()
	fmt.Printf("\nboot %s from %d bytes of CustomData; the extension runs: %s\n", demoNode, len(boot.CustomData), boot.CSE)
	n, err := l.AddNode(ctx, lab.NodeConfig{Name: demoNode, UserData: userData})
	if err != nil {
		return err
	}
	if err := showExtension(ctx, n, boot.CSE); err != nil {
		return err
	}
	if _, err := l.WaitNodeReady(ctx, demoNode); err != nil {
		return err
	}
	fmt.Printf("Ready %.1f s after power on\n\n", time.Since(start).Seconds())
	return showNode(ctx, l, n)
}

// showExtension runs the command as the CustomScript extension does and prints
// what a client makes of its message.
func showExtension(ctx context.Context, n *lab.Node, command string) error {
	message, code, err := n.RunExtension(ctx, command)
	if err != nil {
		return err
	}
	status, err := nodeconfigutils.ParseCSEStatus(message)
	if err != nil {
		return fmt.Errorf("extension ended with %d: %w", code, err)
	}
	fmt.Printf("\nthe extension ended with %d: ExitCode %q, ExecDuration %s s, kernel %s, kubelet %s\n", code, status.ExitCode,
		status.ExecDuration, status.BootDatapoints.KernelStartTime, status.BootDatapoints.KubeletStartTime)
	if status.ExitCode != "0" {
		return fmt.Errorf("provisioning failed: %s", status.Error)
	}
	return nil
}

func showNode(ctx context.Context, l *lab.Lab, n *lab.Node) error {
	timeline, err := n.Output(ctx, "berth", "timeline")
	if err != nil {
		return err
	}
	fmt.Println(timeline)
	r, err := l.Kubectl(ctx, "get", "nodes", "-o", "wide")
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(r.Stdout)
	return err
}
