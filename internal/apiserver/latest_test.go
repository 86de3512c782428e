package apiserver

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

func TestLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Latest[int]
		if _, known := l.Get(); known {
			t.Error("knows before it was told")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var seen []int
		go func() {
			for v := range l.Each(ctx) {
				if v == nil {
					seen = append(seen, -1)
					continue
				}
				seen = append(seen, *v)
			}
		}()
		for _, v := range []int{1, 2} {
			synctest.Wait()
			l.Set(&v)
		}
		synctest.Wait()
		l.Set(nil)
		synctest.Wait()
		if v, known := l.Get(); v != nil || !known {
			t.Errorf("has %v, %v", v, known)
		}
		for _, v := range []int{3, 4} { // nobody looks in between
			l.Set(&v)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if want := []int{1, 2, -1, 4}; !slices.Equal(seen, want) {
			t.Errorf("saw %v, want %v", seen, want)
		}
	})
}
