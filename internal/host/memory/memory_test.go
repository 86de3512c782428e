package memory

import "testing"

func TestSmoke(t *testing.T) {
	h := New()
	h.Put("/usr/bin/x", "x", 0o755)
	h.Put("/etc/systemd/system/x.service", "[Service]\nType=notify\nExecStart=/usr/bin/x\n[Install]\nWantedBy=multi-user.target\n", 0o644)
	if err := h.StartUnit(t.Context(), "x.service"); err != nil {
		t.Fatal(err)
	}
	st, err := h.Unit(t.Context(), "x.service")
	t.Logf("%+v %v %v", st, err, h.Jobs())
	h.Symlink("../x.service", "/etc/systemd/system/multi-user.target.wants/x.service")
	h.Mkdir("/etc/systemd/system/multi-user.target.wants", 0o755)
	h.Symlink("../x.service", "/etc/systemd/system/multi-user.target.wants/x.service")
	h.Boot()
	t.Logf("%v", h.Jobs())
	if h.Units()["x.service"].ActiveState != "active" {
		t.Fatal(h.Units()["x.service"])
	}
}
