package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/internal/contract/node"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/join"
	"github.com/berth-dev/berth/internal/provision"
)

// flexConfig is where AKS Flex Node has its configuration unless --config names it.
const flexConfig = "/etc/aks-flex-node/config.json"

// bootstrap is join under the name of AKS Flex Node, of its configuration.
func (e *env) bootstrap() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "bootstrap", Aliases: []string{"start"}, Short: "Make this machine a node of the cluster that a configuration names", Args: e.noArgs,
		Long: "Make this machine a node of the cluster that a configuration of AKS Flex Node names, in its first shape or the present\n" +
			"one, and wait until the cluster calls it Ready: berth join of what berth config migrate makes of it. What has no place\n" +
			"there is told by its path, and is not in force. A second run changes nothing.",
		RunE: func(c *cobra.Command, _ []string) error {
			if e.uid != 0 {
				return e.notRootFor("make this machine a node")
			}
			o, err := e.joining(file, func(ctx context.Context, p *parts, text []byte) (*join.Wanted, error) {
				return e.wantedByFlex(ctx, p, file, text)
			})
			if err != nil {
				return err
			}
			o.WaitFor, o.Timeout = provision.StageReady, joinTimeout
			return e.joined(c.Context(), "text", o)
		},
	}
	c.Flags().StringVar(&file, "config", flexConfig, "read the configuration, JSON, from `FILE`")
	return c
}

// wantedByFlex decodes a configuration of AKS Flex Node. Its secrets stay inline: it has
// them itself.
func (e *env) wantedByFlex(ctx context.Context, p *parts, file string, text []byte) (*join.Wanted, error) {
	doc, notes, err := node.FromFlex(text, node.SecretPlace{Inline: true})
	if err != nil {
		return nil, refused{err}
	}
	if text, err = node.Text(doc); err != nil {
		return nil, fmt.Errorf("translate %s: %w", file, err)
	}
	w, err := e.wanted(ctx, p, text)
	if err != nil {
		return nil, fmt.Errorf("%s, as a NodeConfig: %w", file, err)
	}
	w.Notes = slices.Concat(notes, w.Notes)
	return w, nil
}

// unbootstrap is leave under the name of AKS Flex Node: it asks nothing, and what could
// not be taken away is told and is no failure.
func (e *env) unbootstrap() *cobra.Command {
	c := &cobra.Command{
		Use: "unbootstrap", Aliases: []string{"reset"}, Short: "Take this machine out of its cluster and give it back as it was", Args: e.noArgs,
		Long: "Take this machine out of its cluster and give it back as it was: berth leave --force. No configuration is needed.\n" +
			"As with the published program, what stays, the Node in the cluster first of all, is named, and the exit code is 0.",
		RunE: func(c *cobra.Command, _ []string) error {
			if e.uid != 0 {
				return e.notRootFor("take this machine out of its cluster")
			}
			h, err := e.open("/")
			if err != nil {
				return err
			}
			p := newProgress(e)
			o, err := e.leaving(h, p)
			if err != nil {
				return err
			}
			o.Force, o.DrainTimeout = true, drainTimeout
			return unlessKept(e.runLeave(c.Context(), p, o))
		},
	}
	c.Flags().String("config", flexConfig, "not read: what berth did here stands on the machine")
	return c
}

// unlessKept takes exit code 4, of which the published program knows nothing, for done.
func unlessKept(err error) error {
	if code, ok := errors.AsType[told](err); ok && code == exitcode.Kept {
		return nil
	}
	return err
}
