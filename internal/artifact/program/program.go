// Package program tells by a file's first bytes which machines run it.
package program

import (
	"debug/elf"
	"encoding/binary"
)

// HeadSize is how many first bytes of a file tell, at most.
const HeadSize = 20

// machines are those of ELF by the names that Go has for them.
var machines = map[string]elf.Machine{
	"386": elf.EM_386, "amd64": elf.EM_X86_64, "arm": elf.EM_ARM, "arm64": elf.EM_AARCH64,
	"loong64": elf.EM_LOONGARCH, "ppc64le": elf.EM_PPC64, "riscv64": elf.EM_RISCV, "s390x": elf.EM_S390,
}

// Foreign says whether a file that begins with head is an ELF program for another
// architecture than arch, which is as Go names it, and for which one: by Go's
// name, or ELF's where Go has none. It is false where arch is not known here, and
// for what no machine runs by itself (eBPF objects).
func Foreign(head []byte, arch string) (got string, foreign bool) {
	m := machineOf(head)
	want, ok := machines[arch]
	if !ok || m == want || m == elf.EM_NONE || m == elf.EM_BPF {
		return "", false
	}
	for name, one := range machines {
		if one == m {
			return name, true
		}
	}
	return m.String(), true
}

// machineOf is EM_NONE for what is no ELF file.
func machineOf(head []byte) elf.Machine {
	if len(head) < HeadSize || string(head[:4]) != elf.ELFMAG {
		return elf.EM_NONE
	}
	if elf.Data(head[elf.EI_DATA]) == elf.ELFDATA2MSB {
		return elf.Machine(binary.BigEndian.Uint16(head[18:]))
	}
	return elf.Machine(binary.LittleEndian.Uint16(head[18:]))
}
