package sysctl

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// needs are the host's limits that all nodes of all labs share, and what a few
// labs need: a node's programs hold some twenty inotify instances.
var needs = map[string]int{
	"/proc/sys/fs/inotify/max_user_instances": 8192,
	"/proc/sys/fs/inotify/max_user_watches":   524288,
}

// Raise lifts the limits that are lower than what nodes need. Restore puts them
// back.
func Raise() error {
	for path, need := range needs {
		if err := raise(path, need); err != nil {
			return err
		}
	}
	return nil
}

func raise(path string, need int) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read kernel limit: %w", err)
	}
	if have, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && have >= need {
		return nil
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(need)), 0); err != nil {
		return fmt.Errorf("raise kernel limit: %w", err)
	}
	return nil
}
