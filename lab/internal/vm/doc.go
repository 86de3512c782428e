// Package vm runs emulated machines for the lab: their own kernel, cgroup v2,
// ext4 with a journal, a real reboot and a real power cut. It needs no KVM.
//
// A machine is a directory: disk.qcow2 (an overlay of an Image), seed.iso
// (NoCloud), serial.log, qmp.sock, agent.sock, qemu.pid. Commands inside the
// guest go through the QEMU guest agent, so they work before and without the
// network.
package vm
