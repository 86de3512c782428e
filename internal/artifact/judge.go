package artifact

import (
	"debug/elf"
	"errors"
	"io"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

// machines are the ELF machines by GOARCH.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// judge looks at what was staged before anything can run it: programs are for
// this architecture, and of the version that was asked for where they tell it.
func (f *Fetcher) judge(h host.FS, a *desired.Artifact, url string) error {
	for _, file := range a.Files {
		if file.Mode.Perm()&0o111 == 0 {
			continue
		}
		got, err := machineOf(h, host.TempName(file.Path))
		if err != nil {
			return &hostError{err}
		}
		if want := machines[f.opt.Arch]; got != elf.EM_NONE && want != elf.EM_NONE && got != want {
			return &MismatchError{URL: url, What: "architecture", Got: got.String(), Want: want.String()}
		}
	}
	if a.Version == "" {
		return nil
	}
	got, err := builtVersion(h, host.TempName(a.Files[0].Path))
	if err != nil {
		return &hostError{err}
	}
	if got != "" && got != a.Version {
		return &MismatchError{URL: url, What: "version", Got: got, Want: a.Version}
	}
	return nil
}

// machineOf reads an ELF file's machine; EM_NONE for any other file.
func machineOf(h host.FS, p string) (elf.Machine, error) {
	file, err := h.Open(p)
	if err != nil {
		return elf.EM_NONE, err
	}
	defer file.Close()
	var head [20]byte
	if _, err := file.ReadAt(head[:], 0); errors.Is(err, io.EOF) {
		return elf.EM_NONE, nil
	} else if err != nil {
		return elf.EM_NONE, err
	}
	if string(head[:4]) != elf.ELFMAG {
		return elf.EM_NONE, nil
	}
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		return elf.Machine(uint16(head[18])<<8 | uint16(head[19])), nil
	}
	return elf.Machine(uint16(head[19])<<8 | uint16(head[18])), nil
}
