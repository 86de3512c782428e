package machine

import "github.com/godbus/dbus/v5"

type unitWatch struct{}

func (*unitWatch) changed(dbus.ObjectPath) {}
