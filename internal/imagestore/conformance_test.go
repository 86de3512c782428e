package imagestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
)

// target is a containerd that the suite runs against.
type target struct {
	*Store
	restart func() error
}

// servers are the fake, and a real containerd where BERTH_CONTAINERD names its
// socket. BERTH_CONTAINERD_RESTART is a shell command that restarts it, where it
// is no service of this machine.
func servers() map[string]func(*testing.T) target {
	all := map[string]func(*testing.T) target{"fake": fakeTarget}
	restart := cmp.Or(os.Getenv("BERTH_CONTAINERD_RESTART"), "systemctl restart containerd.service")
	if socket := os.Getenv("BERTH_CONTAINERD"); socket != "" {
		all["containerd"] = func(*testing.T) target {
			return target{&Store{own: settings{socket: socket, namespace: "berth-conformance", patience: 20 * time.Second}},
				func() error { return exec.Command("sh", "-c", restart).Run() }}
		}
	}
	return all
}

func fakeTarget(t *testing.T) target {
	f := startFake(t)
	return target{&Store{own: settings{socket: f.socket, patience: 10 * time.Second}}, func() error {
		f.stop()
		f.start()
		return nil
	}}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// imports imports an image that the test's end removes.
func imports(t *testing.T, s target, img *sample) {
	t.Helper()
	if err := s.Import(within(t, time.Minute), img.Image); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.remove(context.Background(), img.Reference); err != nil {
			t.Error(err)
		}
	})
	wantHas(t, s, img.Image, "")
}

// wantHas checks the beginning of Has's reason; "" means that the image is there.
func wantHas(t *testing.T, s target, img Image, reason string) {
	t.Helper()
	ok, got, err := s.Has(within(t, time.Minute), img)
	if err != nil || ok != (reason == "") || !strings.HasPrefix(got, reason) || reason == "" && got != "" {
		t.Fatalf("has %s: %v, %q, %v; want reason %q", img.Reference, ok, got, err, reason)
	}
}

// seed makes each case's bytes its own: a real containerd outlives the cases.
func seed() uint64 { return uint64(time.Now().UnixNano()) }

var conformance = map[string]func(t *testing.T, s target){
	"one manifest": func(t *testing.T, s target) {
		img := single("registry.test/one:1", seed(), 5<<20, 0, 100, 0)
		wantHas(t, s, img.Image, "absent")
		imports(t, s, img)
		wantHas(t, s, Image{Reference: img.Reference}, "")
		wantHas(t, s, Image{Reference: "registry.test/one@" + img.Digest}, "")
		wantHas(t, s, Image{Reference: "registry.test/one:2"}, "absent")
	},
	"index": func(t *testing.T, s target) {
		img := multi("registry.test/many:1", seed(), 1000, 2000)
		imports(t, s, img)
	},
	"short name": func(t *testing.T, s target) {
		img := single("short", seed(), 10)
		imports(t, s, img)
		wantHas(t, s, Image{Reference: "docker.io/library/short:latest"}, "")
	},
	"again": func(t *testing.T, s target) {
		img := multi("registry.test/again:1", seed(), 1000, 2000)
		imports(t, s, img)
		opened, _ := img.layerReads()
		imports(t, s, img)
		if again, _ := img.layerReads(); again != opened || opened != 2 {
			t.Fatalf("layers were opened %d and %d times", opened, again-opened)
		}
	},
	"shared layers": func(t *testing.T, s target) {
		n := seed()
		one, two := single("registry.test/base:1", n, 3000), single("registry.test/derived:1", n, 3000, 50)
		imports(t, s, one)
		imports(t, s, two)
		if two.opened[two.layers[0]] != 0 || two.opened[two.layers[1]] != 1 {
			t.Fatalf("opened %v", two.opened)
		}
	},
	"garbage collection": func(t *testing.T, s target) {
		keep, drop := multi("registry.test/keep:1", seed(), 1000, 2000), single("registry.test/drop:1", seed()+1, 1000)
		imports(t, s, keep)
		imports(t, s, drop)
		for range 50 {
			for range 2 { // the second finds nothing to remove
				if err := s.remove(within(t, time.Minute), drop.Reference); err != nil {
					t.Fatal(err)
				}
			}
			wantHas(t, s, drop.Image, "absent")
			wantHas(t, s, keep.Image, "")
			before, _ := drop.layerReads()
			imports(t, s, drop)
			if opened, _ := drop.layerReads(); opened > before {
				return
			}
			// containerd's CRI plugin names images of its own accord, some time after an
			// import: what it names while the image is removed stays.
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatal("removed layers were still there")
	},
	"a tag moves": func(t *testing.T, s target) {
		one, two := single("registry.test/moves:1", seed(), 100), single("registry.test/moves:1", seed()+1, 100)
		imports(t, s, one)
		wantHas(t, s, two.Image, "digest "+one.Digest)
		imports(t, s, two)
		wantHas(t, s, one.Image, "digest "+two.Digest)
		wantHas(t, s, Image{Reference: "registry.test/moves@" + one.Digest}, "")
		if err := s.remove(within(t, time.Minute), "registry.test/moves@"+one.Digest); err != nil {
			t.Fatal(err)
		}
	},
	"two tags": func(t *testing.T, s target) {
		n := seed()
		one, two := single("registry.test/tags:1", n, 100), single("registry.test/tags:2", n, 100)
		imports(t, s, one)
		imports(t, s, two)
		if err := s.remove(within(t, time.Minute), one.Reference); err != nil {
			t.Fatal(err)
		}
		wantHas(t, s, two.Image, "")
		wantHas(t, s, Image{Reference: "registry.test/tags@" + one.Digest}, "")
	},
	"wrong bytes": func(t *testing.T, s target) {
		img := single("registry.test/wrong:1", seed(), 1000, 3<<20)
		img.broken[img.layers[1]] = make([]byte, 3<<20)
		err := s.Import(within(t, time.Minute), img.Image)
		if e, ok := errors.AsType[*DigestError](err); !ok || e.Want != img.layers[1] {
			t.Fatalf("error %v", err)
		}
		wantHas(t, s, img.Image, "absent")
		delete(img.broken, img.layers[1])
		imports(t, s, img)
	},
	"wrong size": func(t *testing.T, s target) {
		img := single("registry.test/size:1", seed(), 1000)
		img.broken[img.layers[0]] = make([]byte, 999)
		if _, ok := errors.AsType[*DigestError](s.Import(within(t, time.Minute), img.Image)); !ok {
			t.Fatal("no digest error")
		}
		wantHas(t, s, img.Image, "absent")
	},
	"resume": func(t *testing.T, s target) {
		img := single("registry.test/resume:1", seed(), 8<<20)
		img.cut[img.layers[0]] = 5<<20 + 7
		if err := s.Import(within(t, time.Minute), img.Image); !errors.Is(err, errCut) {
			t.Fatalf("error %v", err)
		}
		wantHas(t, s, img.Image, "absent")
		_, before := img.layerReads()
		delete(img.cut, img.layers[0])
		imports(t, s, img)
		if _, after := img.layerReads(); after-before > 4<<20 {
			t.Fatalf("%d bytes were sent again", after-before)
		}
	},
	"resume wrong bytes": func(t *testing.T, s target) {
		img := single("registry.test/distrust:1", seed(), 8<<20)
		img.broken[img.layers[0]], img.cut[img.layers[0]] = make([]byte, 8<<20), 5<<20
		if err := s.Import(within(t, time.Minute), img.Image); !errors.Is(err, errCut) {
			t.Fatalf("error %v", err)
		}
		clear(img.broken)
		clear(img.cut)
		imports(t, s, img)
	},
	"a restart": func(t *testing.T, s target) {
		img := single("registry.test/restart:1", seed(), 2<<20, 12<<20)
		var once sync.Once
		img.at = func(layer string, read int64) {
			if layer == img.layers[1] && read > 6<<20 {
				once.Do(func() { must(s.restart()) })
			}
		}
		imports(t, s, img)
		if _, read := img.layerReads(); read > 14<<20+8<<20 {
			t.Errorf("%d bytes were read", read)
		}
	},
	"two at once": func(t *testing.T, s target) {
		img := multi("registry.test/race:1", seed(), 4<<20, 4<<20)
		var both sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			both.Go(func() { errs[i] = s.Import(within(t, time.Minute), img.Image) })
		}
		both.Wait()
		imports(t, s, img)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	},
	"shared layers at once": func(t *testing.T, s target) {
		n := seed()
		var group sync.WaitGroup
		images := make([]*sample, 6)
		errs := make([]error, len(images))
		for i := range images {
			images[i] = single(fmt.Sprintf("registry.test/shared%d:1", i), n, 6<<20, 10+i)
			group.Go(func() { errs[i] = s.Import(within(t, time.Minute), images[i].Image) })
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		opened := 0
		for _, img := range images {
			imports(t, s, img)
			opened += img.opened[img.layers[0]]
		}
		if opened != 1 {
			t.Errorf("the shared layer was opened %d times", opened)
		}
	},
	"a layer is lost": func(t *testing.T, s target) {
		img := single("registry.test/lost:1", seed(), 1000)
		imports(t, s, img)
		c, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		if _, err := c.content.Delete(within(t, time.Second), &contentapi.DeleteContentRequest{Digest: img.layers[0]}); err != nil {
			t.Fatal(err)
		}
		wantHas(t, s, img.Image, "blob "+img.layers[0]+" is missing")
		imports(t, s, img)
	},
	"a label is lost": func(t *testing.T, s target) {
		img := single("registry.test/labels:1", seed(), 1000)
		imports(t, s, img)
		c, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
		labels := map[string]string{gcContent + "l.0": "", gcContent + "config": "sha256:0"}
		if _, err := c.content.Update(within(t, time.Second), &contentapi.UpdateRequest{
			Info: &contentapi.Info{Digest: img.Digest, Labels: labels}, UpdateMask: labelMask(labels)}); err != nil {
			t.Fatal(err)
		}
		imports(t, s, img)
		info, err := c.content.Info(within(t, time.Second), &contentapi.InfoRequest{Digest: img.Digest})
		if err != nil || info.Info.Labels[gcContent+"l.0"] != img.layers[0] {
			t.Fatalf("labels %v, %v", info.GetInfo().GetLabels(), err)
		}
	},
	"pinned": func(t *testing.T, s target) {
		img := single("registry.test/pinned:1", seed(), 1000)
		if whole, err := s.Pin(within(t, time.Minute), img.Image); err != nil || whole {
			t.Fatalf("pinned what is not there: %v, %v", whole, err)
		}
		pinned := img.Image
		pinned.Pinned = true
		imports(t, s, img)
		wantHas(t, s, pinned, unpinned)
		for range 2 {
			if whole, err := s.Pin(within(t, time.Minute), Image{Reference: img.Reference}); err != nil || !whole {
				t.Fatalf("not pinned: %v, %v", whole, err)
			}
			wantHas(t, s, pinned, "")
		}
		if whole, err := s.Pin(within(t, time.Minute), Image{Reference: img.Reference, Digest: "sha256:" + strings.Repeat("0", 64)}); err != nil || whole {
			t.Fatalf("pinned another: %v, %v", whole, err)
		}
	},
	"imported pinned": func(t *testing.T, s target) {
		img := multi("registry.test/kept:1", seed(), 1000)
		img.Pinned = true
		imports(t, s, img)
	},
	"cancelled": func(t *testing.T, s target) {
		img := single("registry.test/cancelled:1", seed(), 1000)
		ctx, cancel := context.WithCancel(t.Context())
		img.Source = opener(func(d string) (io.ReadCloser, error) {
			if d == img.layers[0] {
				cancel()
			}
			return img.open(d)
		})
		if err := s.Import(ctx, img.Image); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
		wantHas(t, s, img.Image, "absent")
		imports(t, s, img)
	},
}

// TestConformance is what Import and Has promise.
func TestConformance(t *testing.T) {
	for server, open := range servers() {
		for name, run := range conformance {
			t.Run(server+"/"+name, func(t *testing.T) { run(t, open(t)) })
		}
	}
}

// BenchmarkImport sends an image of four layers and 256 MiB.
func BenchmarkImport(b *testing.B) {
	s := &Store{own: settings{socket: os.Getenv("BERTH_CONTAINERD"), namespace: "berth-conformance"}}
	b.SetBytes(256 << 20)
	for b.Loop() {
		b.StopTimer()
		img := single("registry.test/bench:1", seed(), 64<<20, 64<<20, 64<<20, 64<<20)
		b.StartTimer()
		if err := s.Import(b.Context(), img.Image); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.remove(b.Context(), img.Reference); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
