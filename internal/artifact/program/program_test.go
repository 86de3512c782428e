package program

import (
	"debug/elf"
	"os"
	"runtime"
	"testing"
)

func head(m elf.Machine, order elf.Data) []byte {
	b := make([]byte, 64)
	copy(b, elf.ELFMAG)
	b[elf.EI_DATA] = byte(order)
	b[18], b[19] = byte(m), byte(m>>8)
	if order == elf.ELFDATA2MSB {
		b[18], b[19] = b[19], b[18]
	}
	return b
}

func TestForeign(t *testing.T) {
	for name, c := range map[string]struct {
		head []byte
		arch string
		want string
	}{
		"the same":          {head(elf.EM_X86_64, elf.ELFDATA2LSB), "amd64", ""},
		"another":           {head(elf.EM_AARCH64, elf.ELFDATA2LSB), "amd64", "arm64"},
		"the other way":     {head(elf.EM_X86_64, elf.ELFDATA2LSB), "arm64", "amd64"},
		"big-endian":        {head(elf.EM_S390, elf.ELFDATA2MSB), "amd64", "s390x"},
		"without Go's name": {head(elf.EM_SPARC, elf.ELFDATA2MSB), "amd64", "EM_SPARC"},
		"eBPF":              {head(elf.EM_BPF, elf.ELFDATA2LSB), "amd64", ""},
		"unknown platform":  {head(elf.EM_X86_64, elf.ELFDATA2LSB), "sparc64", ""},
		"no ELF":            {[]byte("#!/bin/sh\necho some text\n"), "amd64", ""},
		"cut short":         {head(elf.EM_AARCH64, elf.ELFDATA2LSB)[:HeadSize-1], "amd64", ""},
		"nothing":           {nil, "amd64", ""},
	} {
		if got, foreign := Foreign(c.head, c.arch); got != c.want || foreign != (c.want != "") {
			t.Errorf("%s: %q, %t, want %q", name, got, foreign, c.want)
		}
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	if got, foreign := Foreign(text, runtime.GOARCH); foreign {
		t.Errorf("this program is for %s", got)
	}
}

func FuzzForeign(f *testing.F) {
	f.Add(head(elf.EM_AARCH64, elf.ELFDATA2LSB))
	f.Fuzz(func(t *testing.T, head []byte) {
		if got, foreign := Foreign(head, "amd64"); foreign != (got != "") {
			t.Errorf("%q, %t", got, foreign)
		}
	})
}
