package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/berth-dev/berth/lab"
)

// layContainerd writes the files of containerd as berth would.
func layContainerd(ctx context.Context, n *lab.Node) error {
	data, err := n.ReadFile("/root/state.json")
	if err != nil {
		return err
	}
	var doc struct {
		State struct {
			Resources []struct {
				Kind string
				Spec struct{ Path, Content string }
			}
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	for _, r := range doc.State.Resources {
		if r.Kind != "file" || !strings.Contains(r.Spec.Path, "containerd") || strings.Contains(r.Spec.Path, "kubelet") {
			continue
		}
		if err := n.Run(ctx, "mkdir", "-p", r.Spec.Path[:strings.LastIndex(r.Spec.Path, "/")]); err != nil {
			return err
		}
		if err := n.WriteFile(r.Spec.Path, []byte(r.Spec.Content), os.FileMode(0o644)); err != nil {
			return err
		}
	}
	return nil
}
