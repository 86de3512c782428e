package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestCommittedCodeIsCurrent(t *testing.T) {
	dir := filepath.Join("..", root)
	files, err := Generate(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): in tools/, run: go run ./protogen", name, err)
		}
	}
}

func TestNoCodeWithoutProto(t *testing.T) {
	dir := filepath.Join("..", root)
	files, err := Generate(dir)
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.pb.go"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != len(files) {
		t.Errorf("%d .pb.go files, %d .proto files", len(found), len(files))
	}
}
