package ipset

import (
	"testing"

	"github.com/mdlayher/netlink"
)

// FuzzNameIn: what the kernel answers is read without a panic.
func FuzzNameIn(f *testing.F) {
	e := netlink.NewAttributeEncoder()
	e.Uint8(protocol, version)
	e.String(setName, "KUBE-CLUSTER-IP")
	attributes, err := e.Encode()
	if err != nil {
		f.Fatal(err)
	}
	answer := append([]byte{2, 0, 0, 0}, attributes...)
	if got := nameIn(answer); got != "KUBE-CLUSTER-IP" {
		f.Errorf("read as %q", got)
	}
	f.Add(answer)
	f.Add([]byte{2, 0, 0, 0})
	f.Fuzz(func(_ *testing.T, data []byte) { nameIn(data) })
}
