package bundle

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestCreateRefuses(t *testing.T) {
	boom := errors.New("boom")
	wrongArch := newLayout(t)
	wrongArch.tagged(pause, wrongArch.image("arm64", "x"))
	noArch := newLayout(t)
	noArch.tagged(pause, noArch.index(noArch.image("arm64", "x"), noArch.image("s390x", "x")))
	cut := newLayout(t)
	d := cut.image("amd64", "layer")
	cut.tagged(pause, d)
	delete(cut.files, memberName("sha256:"+sum([]byte("layer"))))
	altered := newLayout(t)
	altered.tagged(pause, altered.image("amd64", "layer"))
	altered.files[memberName("sha256:"+sum([]byte("layer")))].Data = []byte("LAYER")
	cases := map[string]struct {
		change func(*Spec)
		want   string
	}{
		"platform":         {func(s *Spec) { s.Platform = "linux" }, `platform "linux" is not of the form`},
		"wrong digest":     {func(s *Spec) { s.Artifacts[0].SHA256 = sum([]byte("x")) }, "runc: sha256 is " + sum([]byte("runc"))},
		"two digests":      {func(s *Spec) { s.Artifacts[1].SHA256 = sum([]byte("x")) }, "the document and the URL give different digests"},
		"odd digest":       {func(s *Spec) { s.Artifacts[1].SHA256 = "x" }, "want 64 hex digits"},
		"odd name":         {func(s *Spec) { s.Artifacts[1].Name = "../x" }, "a name has letters"},
		"odd version":      {func(s *Spec) { s.Artifacts[1].Version = "1 2" }, "a version has letters"},
		"odd URL":          {func(s *Spec) { s.Artifacts[1].URLs = []string{"file:///x"} }, "not an https, http or oci URL"},
		"same name":        {func(s *Spec) { s.Artifacts[1].Name, s.Artifacts[1].Version = "runc", "1.4.3" }, "asked for twice with different content"},
		"same URL":         {func(s *Spec) { s.Artifacts[1].URLs = []string{"https://example.com/runc?other"} }, "stands for two artifacts"},
		"no content":       {func(s *Spec) { s.Artifacts[0].Content.Open = failing(boom) }, "boom"},
		"odd reference":    {func(s *Spec) { s.Images[0].Reference = "UP/CASE" }, "is no reference of an image"},
		"pinned elsewhere": {func(s *Spec) { s.Images[0].Reference += "@sha256:" + sum(nil) }, "its digest is sha256:"},
		"wrong image":      {func(s *Spec) { s.Images[0].Source = wrongArch.source(pause) }, "not for linux/amd64; it is for linux/arm64"},
		"no such platform": {func(s *Spec) { s.Images[0].Source = noArch.source(pause) }, "not for linux/amd64; it is for linux/arm64, linux/s390x"},
		"layer missing":    {func(s *Spec) { s.Images[0].Source = cut.source(pause) }, "image " + pause},
		"layer altered":    {func(s *Spec) { s.Images[0].Source = altered.source(pause) }, "from the image's manifest"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec, spool := sample(t), &memorySpool{t: t}
			c.change(&spec)
			m, err := Create(t.Context(), spec, spool, nil, io.Discard)
			if err == nil || m != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if spool.kept != 0 {
				t.Errorf("%d spooled contents are left", spool.kept)
			}
		})
	}
}

func failing(err error) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) { return nil, err }
}

// full is a writer without room.
type full struct{ room int }

var errFull = errors.New("no space")

func (f *full) Write(p []byte) (int, error) {
	if f.room -= len(p); f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestCreateWithoutRoom(t *testing.T) {
	size := len(create(t, sample(t), nil))
	for room := 0; room < size; room += 256 {
		spool := &memorySpool{t: t}
		if _, err := Create(t.Context(), sample(t), spool, nil, &full{room}); !errors.Is(err, errFull) || spool.kept != 0 {
			t.Fatalf("room for %d: %v, %d kept", room, err, spool.kept)
		}
	}
}

func TestCreateInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	spec, spool := sample(t), &memorySpool{t: t}
	spec.Artifacts[1].Content.Open = func(context.Context) (io.ReadCloser, error) {
		cancel(stop)
		return io.NopCloser(strings.NewReader("x")), nil
	}
	if _, err := Create(ctx, spec, spool, nil, io.Discard); !errors.Is(err, stop) || spool.kept != 0 {
		t.Errorf("%v, %d kept", err, spool.kept)
	}
}

func TestCreateNoticesAChangeWhileItReads(t *testing.T) {
	spec, opened := sample(t), 0
	spec.Artifacts[1].Content.Open = func(context.Context) (io.ReadCloser, error) {
		opened++
		return io.NopCloser(strings.NewReader([]string{"", "kubernetes", "Kubernetes"}[opened])), nil
	}
	_, err := Create(t.Context(), spec, &memorySpool{t: t}, nil, io.Discard)
	var changed *ContentError
	if !errors.As(err, &changed) || opened != 2 {
		t.Error(err)
	}
}

func TestCreateMerges(t *testing.T) {
	spec := sample(t)
	again := spec.Artifacts[1]
	again.URLs = []string{"https://third.example/k8s.tar.gz"}
	spec.Artifacts = append(spec.Artifacts, again)
	spec.Images = append(spec.Images, spec.Images[0])
	m := open(t, create(t, spec, nil)).Manifest()
	if len(m.Artifacts) != 2 || len(m.Artifacts[0].URLs) != 3 || len(m.Images) != 1 {
		t.Errorf("%+v", m)
	}
}

func TestEmptyBundle(t *testing.T) {
	b := open(t, create(t, Spec{Platform: "linux/arm64"}, nil))
	if r, err := b.Verify(t.Context(), nil); err != nil || r.Blobs != 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

// Of an index that has a platform twice, the bundle holds what containerd would run.
func TestCreateTakesOneVariant(t *testing.T) {
	l := newLayout(t)
	newer, plain := l.image("amd64", "for newer machines"), l.image("amd64", "for all")
	newer.Platform = &ocispec.Platform{OS: "linux", Architecture: "amd64", Variant: "v3"}
	l.tagged(pause, l.index(newer, l.image("386", "for older machines"), plain))
	raw := create(t, Spec{Platform: "linux/amd64", Images: []ImageSpec{{pause, l.source(pause)}}}, nil)
	b := open(t, raw)
	if _, err := b.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if _, err := b.Blob(sum([]byte("for all"))); err != nil || len(b.Manifest().Blobs) != 4 {
		t.Errorf("%v, %+v", err, b.Manifest().Blobs)
	}
}
