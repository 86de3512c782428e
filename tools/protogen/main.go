// Command protogen writes the Go code of the contracts that are .proto files. Run it in tools/: go run ./protogen
//
// It compiles the files in process and calls protoc-gen-go as a library: no protoc, no buf, no plugin on PATH,
// and its test can compare every byte in a second.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// root is where imports of .proto files start, seen from tools/.
const root = "../api"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run() error {
	files, err := Generate(root)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
