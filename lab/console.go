package lab

import (
	"fmt"
	"os"
	"path/filepath"
)

// Console is what the node has written to its console since it was made.
func (n *Node) Console() (string, error) {
	b, err := os.ReadFile(filepath.Join(n.rec.Dir, "console.log"))
	if err != nil {
		return "", fmt.Errorf("read console of %s: %w", n.Name, err)
	}
	return string(b), nil
}
