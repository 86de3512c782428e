package exitcode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"testing"
)

func TestOf(t *testing.T) {
	path := func(e error) error { return &fs.PathError{Op: "write", Path: "/etc/x", Err: e} }
	coded := func(n int, e error) error { return &Error{Number: n, Err: e} }
	odd := errors.New("odd")
	for name, c := range map[string]struct {
		err  error
		code int
	}{
		"nothing":               {nil, OK},
		"anything":              {odd, Internal},
		"a code":                {fmt.Errorf("x: %w", coded(Kubelet, odd)), Kubelet},
		"the outer code":        {coded(Module, coded(Kubelet, odd)), Module},
		"no code of its own":    {coded(0, coded(Kubelet, odd)), Kubelet},
		"the first of two":      {errors.Join(odd, coded(Sysctl, odd), coded(Module, odd)), Sysctl},
		"a signal":              {coded(Kubelet, fmt.Errorf("%w: %w", odd, ErrInterrupted)), Interrupted},
		"no time":               {fmt.Errorf("%w: %w", ErrTimeout, coded(Kubelet, odd)), Timeout},
		"no time, told":         {coded(NotReady, ErrTimeout), NotReady},
		"a deadline":            {context.DeadlineExceeded, Timeout},
		"a deadline, told":      {coded(Kubelet, context.DeadlineExceeded), Kubelet},
		"no space":              {coded(Digest, path(syscall.ENOSPC)), NoSpace},
		"no quota":              {path(syscall.EDQUOT), NoSpace},
		"read-only":             {path(syscall.EROFS), Write},
		"read-only, told":       {coded(Trust, path(syscall.EROFS)), Trust},
		"no file was concerned": {syscall.EACCES, Internal},
	} {
		if n := Of(c.err); n != c.code {
			t.Errorf("%s: %d, want %d", name, n, c.code)
		}
	}
}

func TestTree(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	both := errors.Join(a, b)
	top := fmt.Errorf("%w and %w", both, c)
	if got := slices.Collect(Tree(top)); !slices.Equal(got, []error{top, both, a, b, c}) {
		t.Errorf("got %v", got)
	}
	for range Tree(top) {
		break // no more is asked for
	}
}
