package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/spf13/cobra"
)

func (a *app) up() *cobra.Command {
	var nodes int
	var flavour string
	cmd := &cobra.Command{Use: "up", Short: "Start a control plane, and nodes that wait for user data", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := lab.Start(cmd.Context(), lab.Config{Name: a.name, Stay: true})
			if err != nil {
				return err
			}
			for i := range nodes {
				c := lab.NodeConfig{Name: fmt.Sprintf("node-%d", i+1), Flavour: lab.Flavour(flavour), UserData: []byte("#cloud-config\n{}\n")}
				if err := addNode(cmd.Context(), l, c); err != nil {
					return err
				}
			}
			fmt.Printf("lab %s is up; API server %s (%s) inside network namespace %s\n", l.Name, l.APIServer(), lab.APIServerName, l.Namespace())
			fmt.Println("stop it with: berth-lab down --lab", l.Name)
			return nil
		}}
	cmd.Flags().IntVar(&nodes, "nodes", 0, "number of nodes to boot without user data")
	cmd.Flags().StringVar(&flavour, "flavour", string(lab.Prebaked), "image of the nodes: prebaked or bare")
	return cmd
}

func addNode(ctx context.Context, l *lab.Lab, c lab.NodeConfig) error {
	n, err := l.AddNode(ctx, c)
	if err != nil {
		return err
	}
	fmt.Printf("node %s boots at %s\n", n.Name, n.IP)
	return nil
}

func (a *app) down() *cobra.Command {
	var all bool
	cmd := &cobra.Command{Use: "down", Short: "Take the lab down and give the host back as it was", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names := []string{a.name}
			if all {
				var err error
				if names, err = lab.List(); err != nil {
					return err
				}
			}
			var errs []error
			for _, n := range names {
				errs = append(errs, lab.Down(context.WithoutCancel(cmd.Context()), n))
			}
			return errors.Join(errs...)
		}}
	cmd.Flags().BoolVar(&all, "all", false, "take every lab of this machine down")
	return cmd
}

func (a *app) status() *cobra.Command {
	return &cobra.Command{Use: "status", Short: "List labs and their nodes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names, err := lab.List()
			if err != nil {
				return err
			}
			for _, name := range names {
				if err := printLab(cmd.Context(), name); err != nil {
					return err
				}
			}
			return nil
		}}
}

func printLab(ctx context.Context, name string) error {
	l, err := lab.Attach(ctx, lab.Config{Name: name})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	state := "ready"
	if err := l.Ready(ctx); err != nil {
		state = err.Error()
	}
	fmt.Printf("lab %s: API server %s: %s\n", name, l.APIServer(), state)
	nodes, err := l.Nodes()
	if err != nil {
		return err
	}
	var order []string
	for n := range nodes {
		order = append(order, n)
	}
	sort.Strings(order)
	for _, n := range order {
		fmt.Printf("  %-20s %-15s running=%v\n", n, nodes[n].IP, nodes[n].Running())
	}
	return nil
}
