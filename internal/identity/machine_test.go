package identity

import (
	"testing"

	"github.com/berth-dev/berth/internal/host/memory"
)

// kubelet goes to the next path where one is not there.
func TestMachineIDs(t *testing.T) {
	for name, tc := range map[string]struct {
		files   map[string]string
		id, sys string
	}{
		"nothing":  {nil, "", ""},
		"a PC":     {map[string]string{"/etc/machine-id": "a\n", "/sys/class/dmi/id/product_uuid": "b\n"}, "a", "b"},
		"no DMI":   {map[string]string{"/etc/machine-id": "a\n"}, "a", "a"},
		"D-Bus's":  {map[string]string{"/var/lib/dbus/machine-id": "c\n"}, "c", ""},
		"POWER":    {map[string]string{"/etc/machine-id": "a\n", "/proc/device-tree/system-id": "p\x00"}, "a", "p"},
		"POWER VM": {map[string]string{"/proc/device-tree/vm,uuid": "v\x00"}, "", "v"},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			for path, text := range tc.files {
				h.Put(path, text, 0o400)
			}
			if id, sys := MachineID(h), SystemUUID(h); id != tc.id || sys != tc.sys {
				t.Errorf("%q and %q", id, sys)
			}
		})
	}
}
