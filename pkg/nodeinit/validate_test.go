package nodeinit_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/pkg/nodeinit"
)

const keyPEM = "-----BEGIN EC PRIVATE KEY-----\naGlkZGVu\n-----END EC PRIVATE KEY-----\n"

func TestBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(*nodeinit.Data)
		field string
	}{
		"no CA":              {func(d *nodeinit.Data) { d.ClusterCA = nil }, "clusterCA"},
		"CA is no PEM":       {func(d *nodeinit.Data) { d.ClusterCA = []byte("MIIC") }, "clusterCA"},
		"CA is a key":        {func(d *nodeinit.Data) { d.ClusterCA = append(d.ClusterCA, keyPEM...) }, "clusterCA"},
		"CA is damaged":      {func(d *nodeinit.Data) { d.ClusterCA = []byte(strings.Replace(string(d.ClusterCA), "M", "A", 1)) }, "clusterCA"},
		"no token":           {func(d *nodeinit.Data) { d.BootstrapToken = "" }, "bootstrapToken"},
		"token too short":    {func(d *nodeinit.Data) { d.BootstrapToken = "abcdef.hidden" }, "bootstrapToken"},
		"token with a break": {func(d *nodeinit.Data) { d.BootstrapToken = "abcdef.0123456789abcdef\n" }, "bootstrapToken"},
		"other placeholder":  {func(d *nodeinit.Data) { d.BootstrapToken = nodeinit.MachineNamePlaceholder }, "bootstrapToken"},
		"no machine":         {func(d *nodeinit.Data) { d.MachineName = "" }, "machineName"},
		"machine in capital": {func(d *nodeinit.Data) { d.MachineName = "Machine" }, "machineName"},
		"no version":         {func(d *nodeinit.Data) { d.Version = "" }, "version"},
		"version is a path":  {func(d *nodeinit.Data) { d.Version = "../v1" }, "version"},
		"no configuration":   {func(d *nodeinit.Data) { d.Configuration = nil }, "configuration"},
		"not YAML":           {func(d *nodeinit.Data) { d.Configuration = []byte("a: b: c") }, "configuration"},
		"other kind":         {func(d *nodeinit.Data) { d.Configuration = []byte("kind: Pod\napiVersion: v1\n") }, "configuration"},
		"no binary":          {func(d *nodeinit.Data) { d.Binary = nodeinit.Binary{} }, "binary"},
		"two binaries":       {func(d *nodeinit.Data) { d.Binary.Path = "/opt/bin/berth" }, "binary"},
		"relative path":      {func(d *nodeinit.Data) { d.Binary = nodeinit.Binary{Path: "berth"} }, "binary.path"},
		"path with parents":  {func(d *nodeinit.Data) { d.Binary = nodeinit.Binary{Path: "/opt/../berth"} }, "binary.path"},
		"path with a blank":  {func(d *nodeinit.Data) { d.Binary = nodeinit.Binary{Path: "/opt/berth --help"} }, "binary.path"},
		"URL without digest": {func(d *nodeinit.Data) { d.Binary.SHA256 = "" }, "binary.sha256"},
		"digest without URL": {func(d *nodeinit.Data) { d.Binary.URL = "" }, "binary.url"},
		"digest too short":   {func(d *nodeinit.Data) { d.Binary.SHA256 = digest[1:] }, "binary.sha256"},
		"URL of a file":      {func(d *nodeinit.Data) { d.Binary.URL = "file:///etc/passwd" }, "binary.url"},
		"URL with password":  {func(d *nodeinit.Data) { d.Binary.URL = "https://me:hidden@files.example.com/x" }, "binary.url"},
		"URL with fragment":  {func(d *nodeinit.Data) { d.Binary.URL += "#sha256=" + digest }, "binary.url"},
		"URL with quote":     {func(d *nodeinit.Data) { d.Binary.URL += `"` }, "binary.url"},
		"URL with blank":     {func(d *nodeinit.Data) { d.Binary.URL += " -o /etc/passwd" }, "binary.url"},
		"URL with break":     {func(d *nodeinit.Data) { d.Binary.URL += "\nExecStart=x" }, "binary.url"},
		"bad image":          {func(d *nodeinit.Data) { d.Binary = nodeinit.Binary{Image: "Registry/x y", PathInImage: "/x"} }, "binary.image"},
		"image without path": {func(d *nodeinit.Data) { d.Binary = nodeinit.Binary{Image: "example.com/x"} }, "binary.pathInImage"},
		"path without image": {func(d *nodeinit.Data) { d.Binary = nodeinit.Binary{PathInImage: "/x"} }, "binary.image"},
	} {
		d := sample(t, "url")
		c.edit(&d)
		for _, render := range []func(nodeinit.Data) (string, error){nodeinit.CloudConfig, nodeinit.Ignition} {
			text, err := render(d)
			fieldErr, ok := errors.AsType[*field.Error](err)
			if !ok || fieldErr.Field != c.field || text != "" {
				t.Errorf("%s: %v", name, err)
			}
			if _, ok := errors.AsType[*nodeinit.InvalidError](err); !ok || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestAllErrorsAtOnce(t *testing.T) {
	if got := (nodeinit.Data{}).Validate(); len(got) != 6 {
		t.Errorf("%d errors: %v", len(got), got.ToAggregate())
	}
}

func TestTooLarge(t *testing.T) {
	d := sample(t, "path")
	d.Configuration = append(d.Configuration, "# "+strings.Repeat("x", nodeinit.Limit)...)
	for _, render := range []func(nodeinit.Data) (string, error){nodeinit.CloudConfig, nodeinit.Ignition} {
		_, err := render(d)
		size, ok := errors.AsType[*nodeinit.SizeError](err)
		if !ok || size.Limit != 16384 || size.Size <= size.Limit {
			t.Error(err)
		}
	}
}

// Whatever is not refused arrives as it was meant: in one line of the unit, and the same in both documents.
func FuzzBinary(f *testing.F) {
	for _, b := range binaries {
		f.Add(b.Path, b.URL, b.SHA256, b.Image, b.PathInImage, "machine-1", "v1.2.3")
	}
	f.Add("", "https://[::1]:8443/{a}[1-3];x?y=$HOME%n", digest, "", "", "m", "v1")
	f.Add("", "", "", "busybox", "/bin/x", "m", "1.2.3+dirty")
	f.Fuzz(func(t *testing.T, path, url, sum, image, inImage, machine, version string) {
		d := sample(t, "path")
		d.Binary = nodeinit.Binary{Path: path, URL: url, SHA256: sum, Image: image, PathInImage: inImage}
		d.MachineName, d.Version = machine, version
		cloud, err := nodeinit.CloudConfig(d)
		other, otherErr := nodeinit.Ignition(d)
		if (err == nil) != (otherErr == nil) {
			t.Fatalf("%v, but %v", err, otherErr)
		}
		if err != nil {
			return
		}
		got, same := fromCloudConfig(t, cloud).content, fromIgnition(t, other).content
		if len(got) != 5 || len(same) != 5 {
			t.Fatalf("%d and %d files", len(got), len(same))
		}
		for p, content := range got {
			if same[p] != content {
				t.Fatalf("%s differs:\n%q\n%q", p, content, same[p])
			}
		}
		checkUnit(t, got["/etc/systemd/system/"+nodeinit.Unit], d.Binary)
	})
}

func checkUnit(t *testing.T, text string, b nodeinit.Binary) {
	t.Helper()
	lines := map[string]int{}
	for line := range strings.Lines(text) {
		key, _, _ := strings.Cut(line, "=")
		lines[key]++
	}
	want := 0
	switch {
	case b.URL != "":
		want = 6
		if !strings.Contains(text, strings.NewReplacer("%", "%%", "$", "$$").Replace(b.URL)+"\n") {
			t.Errorf("no URL:\n%s", text)
		}
	case b.Image != "":
		want = 8
	}
	if lines["ExecStart"] != 1 || lines["ExecStartPre"] != want {
		t.Errorf("%v in\n%s", lines, text)
	}
}
