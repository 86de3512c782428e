package doctor

import (
	"context"

	"github.com/berth-dev/berth/internal/join/drained"
)

func checkDrained(_ context.Context, v *visit) *finding {
	n, err := drained.Load(v.Host)
	switch {
	case err != nil:
		return unread("what berth notes of a drain", err)
	case n == nil:
		return okf("berth has not cordoned it")
	case n.Broken:
		return failf(n.Remedy(), "%s", n)
	}
	return warnf(n.Remedy(), "%s", n)
}
