package converge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

func (p *planning) module(t *task, m *desired.Module) error {
	there, err := evident(p.h, m)
	if err != nil || there {
		return err
	}
	if p.opt.Offline {
		t.postpone(VerbLoad, "kernel modules load on first boot")
		return nil
	}
	t.act(VerbLoad, "no sign of it in "+strings.Join(m.Evidence, ", "), DisruptNone)
	t.live = func(ctx context.Context) error { return loadModule(ctx, p.h, m) }
	return nil
}

func evident(h host.FS, m *desired.Module) (bool, error) {
	for _, path := range m.Evidence {
		info, err := lstat(h, path)
		if err != nil || info != nil {
			return err == nil, err
		}
	}
	if m.Filesystem == "" {
		return false, nil
	}
	list, _, err := readFile(h, "/proc/filesystems")
	return slices.Contains(strings.Fields(string(list)), m.Filesystem), err
}

func loadModule(ctx context.Context, h host.Host, m *desired.Module) error {
	_, err := h.Run(ctx, host.Command{Path: "modprobe", Args: []string{"--", m.Name}})
	if err != nil {
		return &ModuleError{Name: m.Name, Err: err}
	}
	return nil
}

// ModuleError is a kernel module that could not be loaded.
type ModuleError struct {
	Name string
	Err  error
}

// Error names the module.
func (e *ModuleError) Error() string { return fmt.Sprintf("load kernel module %s: %v", e.Name, e.Err) }

// Unwrap returns the cause.
func (e *ModuleError) Unwrap() error { return e.Err }

func sysctlPath(key string) string {
	swap := strings.NewReplacer(".", "/", "/", ".")
	return "/proc/sys/" + swap.Replace(key)
}

func normalise(value string) string { return strings.Join(strings.Fields(value), " ") }

func (p *planning) sysctl(t *task, s *desired.Sysctl) error {
	if p.opt.Offline {
		t.postpone(VerbSet, "kernel parameters are set on first boot")
		return nil
	}
	path := sysctlPath(s.Key)
	have, ok, err := readFile(p.h, path)
	if err != nil {
		return err
	}
	live, want := normalise(string(have)), normalise(s.Value)
	if ok && live == want {
		return nil
	}
	if ok && s.KubeletWrites {
		t.remarks = append(t.remarks, fmt.Sprintf("%s is %s, the configuration says %s; kubelet sets it too", s.Key, live, want))
		return nil
	}
	if !ok && s.Optional {
		t.remarks = append(t.remarks, "this kernel has no "+s.Key)
		return nil
	}
	reason := "is " + live + ", want " + want
	if !ok {
		reason = "not known to the kernel yet, want " + want
	}
	t.act(VerbSet, reason, DisruptNone)
	t.live = func(context.Context) error { return setSysctl(p.h, s.Key, path, want) }
	return nil
}

func setSysctl(h host.FS, key, path, want string) error {
	if err := h.WriteValue(path, []byte(want+"\n")); err != nil {
		return &SysctlError{Key: key, Value: want, Err: err}
	}
	have, err := h.ReadFile(path)
	if err == nil && normalise(string(have)) != want {
		err = errors.New("the kernel made it " + normalise(string(have)))
	}
	if err != nil {
		return &SysctlError{Key: key, Value: want, Err: err}
	}
	return nil
}

// SysctlError is a kernel parameter that did not take its value.
type SysctlError struct {
	Key, Value string
	Err        error
}

// Error names key and value.
func (e *SysctlError) Error() string { return fmt.Sprintf("set %s to %s: %v", e.Key, e.Value, e.Err) }

// Unwrap returns the cause.
func (e *SysctlError) Unwrap() error { return e.Err }
