package vm

import (
	"cmp"
	"fmt"
)

const agentPort = "org.qemu.guest_agent.0"

// args is QEMU's command line. The guest is created stopped (-S).
//
// cache=unsafe means that the guest's flushes do not reach the host's disk,
// which nobody here needs: what a guest flushed is in the host's page cache and
// survives the end of QEMU.
//
// The processor is one without wide vectors (x86-64-v2): programs that find
// them use them, and emulated they are slow. It saves a fifth of a boot.
//
// There is one processor. With several, each in a thread of its own, QEMU 7.2 may go on with
// an old translation of an instruction that Linux has patched meanwhile: both processors then
// stay in the trap that Linux puts in its place, for good.
//
// A reset ends QEMU and live starts the next one: reboots within one process of
// QEMU 7.2 sometimes stood still in the kernel. The cause is not known.
func (v *VM) args() []string {
	c := v.cfg
	a := []string{
		"-S", "-no-reboot", "-nodefaults", "-display", "none", "-name", c.Name,
		"-machine", "pc", "-accel", "tcg", "-cpu", "Nehalem",
		"-m", fmt.Sprint(cmp.Or(c.MemoryMiB, 1536)),
		"-kernel", c.Image.Kernel, "-initrd", c.Image.Initrd, "-append", kernelLine(c.Append),
		"-drive", "if=virtio,format=qcow2,cache=unsafe,file=" + v.path(overlayName),
		"-drive", "if=virtio,format=raw,readonly=on,file=" + v.path("seed.iso"),
		"-chardev", "file,id=serial,append=on,path=" + v.path("serial.log"), "-serial", "chardev:serial",
		"-chardev", "socket,id=qmp,server=on,wait=off,path=" + v.path("qmp.sock"), "-mon", "chardev=qmp,mode=control",
		"-chardev", "socket,id=agent,server=on,wait=off,path=" + v.path("agent.sock"),
		"-device", "virtio-serial", "-device", "virtserialport,id=agent,chardev=agent,name=" + agentPort,
		"-device", "virtio-rng-pci",
	}
	return append(a, cards(c)...)
}

func cards(c Config) (a []string) {
	if c.Tap != "" {
		a = append(a, "-netdev", "tap,id=net,script=no,downscript=no,ifname="+c.Tap,
			"-device", "virtio-net-pci,netdev=net,mac="+c.MAC)
	}
	for i, further := range c.Further {
		id := fmt.Sprint("net", i+1)
		a = append(a, "-netdev", "user,id="+id+",net="+further.Subnet.String(),
			"-device", "virtio-net-pci,netdev="+id+",mac="+further.MAC)
	}
	return a
}

// kernelLine: mitigations cost time and protect nothing here. The emulated time
// stamp counters agree, but look as if they did not when the host is busy;
// Linux would then fall back to a clock whose every reading leaves the guest.
func kernelLine(extra string) string {
	line := "root=/dev/vda rw console=ttyS0 mitigations=off tsc=reliable"
	if extra != "" {
		line += " " + extra
	}
	return line
}
