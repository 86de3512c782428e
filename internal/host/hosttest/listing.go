package hosttest

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/host"
)

func unitTemplateRefused(t *testing.T, h host.Host, _ string) {
	const name = "berth-conformance@.service"
	define(t, h, map[string]string{name: sleeper})
	_, err := h.Unit(t.Context(), name)
	var refused *host.UnitError
	if !errors.Is(err, host.ErrNotAUnit) || !errors.As(err, &refused) || refused.Unit != name {
		t.Errorf("error %v", err)
	}
}

func unitsListed(t *testing.T, h host.Host, _ string) {
	const template = "berth-conformance-list@.service"
	define(t, h, map[string]string{template: sleeper})
	var want []host.UnitStatus
	for _, name := range []string{"berth-conformance-list@a.service", "berth-conformance-list@b.service"} {
		must(t, h.StartUnit(t.Context(), name))
		t.Cleanup(func() { _ = h.StopUnit(context.Background(), name) })
		want = append(want, host.UnitStatus{Name: name, LoadState: "loaded", ActiveState: "active", SubState: "running"})
	}
	for _, patterns := range [][]string{{"berth-conformance-list@*.service"}, {"none", "berth-conformance-list@?.*"}} {
		got, err := h.ListUnits(t.Context(), patterns...)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", patterns, diff)
		}
	}
	none, err := h.ListUnits(t.Context(), "berth-conformance-none*")
	if err != nil || len(none) > 0 {
		t.Errorf("nothing matches: %v, %v", none, err)
	}
}
