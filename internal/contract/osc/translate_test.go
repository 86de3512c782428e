package osc

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/desired"
)

var machine = component.Facts{
	Hostname: "bare", ContainerdPath: "/usr/bin/containerd", ContainerdVersion: "2.2.9", VendorUnits: []string{"containerd.service"},
	SecretData: map[string]map[string][]byte{"kubelet-token": {"token": []byte("hunter2")}},
}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decoded(t testing.TB, text string) *Document {
	t.Helper()
	doc, err := Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestTranslate(t *testing.T) {
	doc := decoded(t, string(sample(t, "full.yaml")))
	st, err := Translate(doc, machine)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(map[string]any{
		"state": st, "notes": doc.Notes, "unused": st.Unused, "partial": st.Partial, "unhandled": st.Unhandled,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "full.golden.json", string(got)+"\n")
}

const head = "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: OperatingSystemConfig\n"

// What a unit's fields come to.
func TestUnits(t *testing.T) {
	for name, c := range map[string]struct {
		unit       string
		enablement desired.Enablement
		activation desired.Activation
		mentioned  bool
	}{
		"nothing said":        {`{name: a.service}`, desired.Enabled, desired.Started, true},
		"start":               {`{name: a.service, command: start}`, desired.Enabled, desired.Started, true},
		"restart":             {`{name: a.service, command: restart, enable: true}`, desired.Enabled, desired.Started, false},
		"stop":                {`{name: a.service, command: stop}`, desired.Enabled, desired.Stopped, true},
		"not enabled":         {`{name: a.service, enable: false}`, desired.Disabled, desired.Stopped, false},
		"started, yet not on": {`{name: a.service, enable: false, command: start}`, desired.Disabled, desired.Stopped, false},
		"template":            {`{name: a@.service}`, desired.Enabled, desired.AnyActivation, true},
		"dotted template":     {`{name: io.example.proxy@.service}`, desired.Enabled, desired.AnyActivation, true},
		"dotted instance":     {`{name: io.example.proxy@a.b.service}`, desired.Enabled, desired.Started, true},
		"instance at a dot":   {`{name: proxy@.a.service}`, desired.Enabled, desired.Started, true},
		"instance with an @":  {`{name: dial@user@host.service}`, desired.Enabled, desired.Started, true},
		"later one counts":    {`{name: a.service, enable: true, command: start}, {name: a.service, enable: false}`, desired.Disabled, desired.Stopped, false},
		"the rest stays":      {`{name: a.service, command: stop}, {name: a.service}`, desired.Enabled, desired.Stopped, true},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := Translate(decoded(t, head+"spec: {units: ["+c.unit+"]}"), component.Facts{})
			if err != nil {
				t.Fatal(err)
			}
			u := st.Resources[0].(*desired.Unit)
			if len(st.Resources) != 1 || u.Enablement != c.enablement || u.Activation != c.activation || u.Mentioned != c.mentioned {
				t.Errorf("%+v", u)
			}
		})
	}
}

// kubelet starts when containerd runs, whoever configures that.
func TestRuntimeFirst(t *testing.T) {
	st, err := Translate(decoded(t, head+"spec: {units: [{name: kubelet.service, command: start}, {name: containerd.service, command: start}]}"), component.Facts{})
	if err != nil {
		t.Fatal(err)
	}
	if u := st.Lookup("unit:kubelet.service").(*desired.Unit); !slices.Contains(u.After, "unit:containerd.service") {
		t.Errorf("%+v", u)
	}
}

// A value of a Secret is not shown, whatever the mode of its file.
func TestSecretRefs(t *testing.T) {
	doc := decoded(t, head+`spec: {files: [
		{path: /a, permissions: 420, content: {secretRef: {name: s, dataKey: k}}},
		{path: /b, content: {secretRef: {name: s, dataKey: k}}},
		{path: /c, hostName: x, content: {secretRef: {name: s, dataKey: other}}},
		{path: /d, hostName: z, content: {secretRef: {name: s, dataKey: never}}}]}`)
	if diff := cmp.Diff([]SecretRef{{"s", "k"}, {"s", "other"}}, doc.SecretRefs("X")); diff != "" {
		t.Error(diff)
	}
	facts := component.Facts{Hostname: "x", SecretData: map[string]map[string][]byte{"s": {"k": []byte("hunter2"), "other": nil}}}
	st, err := Translate(doc, facts)
	if err != nil {
		t.Fatal(err)
	}
	f := golden.File(t, st, "/a")
	if f.Content.String() != desired.Redact([]byte("hunter2")) || f.Mode != 0o644 {
		t.Errorf("%+v", f)
	}
	for _, facts := range []component.Facts{{}, {SecretData: map[string]map[string][]byte{"s": {}}}} {
		_, err := Translate(doc, facts)
		wantErrors(t, err, "spec.files[0].content.secretRef", "spec.files[1].content.secretRef")
	}
}

// The first pull knows the registries of the document, with their CAs.
func TestAhead(t *testing.T) {
	st, err := Translate(decoded(t, head+`spec:
  criConfig: {name: containerd, containerd: {registries: [{upstream: a.b, hosts: [{url: "https://c.d", caCerts: [/ca.pem]}]}]}}
  files:
  - {path: /ca.pem, permissions: 420, content: {inline: {data: CA}}}
  - {path: /other.pem, permissions: 420, content: {inline: {data: CA}}}
  - {path: /x, content: {imageRef: {image: "a.b/c:v1", filePathInImage: /x}}}
`), component.Facts{})
	if err != nil {
		t.Fatal(err)
	}
	a := st.Lookup(desired.ArtifactID("a.b/c:v1")).(*desired.Artifact)
	if diff := cmp.Diff([]string{"/ca.pem", "/etc/containerd/certs.d/a.b/hosts.toml"}, slices.Sorted(maps.Keys(a.Ahead))); diff != "" {
		t.Error(diff)
	}
}

// A host that stands there again is taken, and written once: containerd reads no file with
// a table twice.
func TestHostTwice(t *testing.T) {
	st, err := Translate(decoded(t, head+`spec:
  criConfig: {name: containerd, containerd: {registries: [{upstream: a.b, hosts: [{url: "https://c.d"}, {url: "https://c.d", capabilities: [pull, resolve], caCerts: [], overridePath: false}]}]}}
`), component.Facts{})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(golden.File(t, st, "/etc/containerd/certs.d/a.b/hosts.toml").Content.Data()); strings.Count(text, "https://c.d") != 1 {
		t.Error(text)
	}
}

// What another wrote of containerd stays, and what berth can't change is told.
func TestConfigurationOfOthers(t *testing.T) {
	const text = "spec: {criConfig: {name: containerd, containerd: {plugins: [{op: remove, path: [a, b]}], registries: [{upstream: a.b}]}}}"
	facts := component.Facts{ContainerdVersion: "2.2.9", ContainerdConfig: "version = 3\n[plugins.a.b]\nc = 1\n[plugins.'io.containerd.cri.v1.images'.registry.mirrors]\n"}
	st, err := Translate(decoded(t, head+text), facts)
	if err != nil {
		t.Fatal(err)
	}
	var partial []string
	for _, n := range st.Partial {
		partial = append(partial, n.Path)
	}
	if diff := cmp.Diff([]string{"spec.criConfig.containerd.plugins[0]", "spec.criConfig.containerd.registries"}, partial); diff != "" {
		t.Error(diff)
	}
	if st.Lookup(desired.FileID(containerd.ConfigFile)) != nil || st.Lookup(desired.BlockID(containerd.ConfigFile, containerd.ImportBlock)) == nil {
		t.Error("config.toml is replaced")
	}
	facts.ContainerdConfig = "["
	_, err = Translate(decoded(t, head+text), facts)
	wantErrors(t, err, "spec.criConfig")
	own := head + "spec: {criConfig: {name: containerd}, files: [{path: /etc/containerd/config.toml, content: {inline: {data: \"%s\"}}}]}"
	st, err = Translate(decoded(t, fmt.Sprintf(own, "imports = ['/etc/containerd/conf.d/*.toml']")), component.Facts{})
	if err != nil || st.Lookup(desired.FileID(containerd.ChangesFile)) == nil {
		t.Errorf("the document's own file: %v", err)
	}
	_, err = Translate(decoded(t, fmt.Sprintf(own, "version = 2")), component.Facts{})
	wantErrors(t, err, "spec.criConfig")
}

// A document that brings containerd asks for the same before it is there and after.
func TestContainerdOfTheDocument(t *testing.T) {
	const existing = "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.cni]\nconf_dir = '/x'\n"
	const image = `{path: %s, permissions: 493, content: {imageRef: {image: "a.b/c:v1", filePathInImage: /x}}}`
	for name, c := range map[string]struct {
		file string
		same bool
	}{
		"out of an image":   {fmt.Sprintf(image, "/usr/bin/containerd"), true},
		"the other path":    {fmt.Sprintf(image, "/usr/local/bin/containerd"), true},
		"in the document":   {inline("/usr/bin/containerd"), true},
		"for other machine": {"{path: /usr/bin/containerd, hostName: other, content: {inline: {data: x}}}", false},
		"another program":   {inline("/usr/bin/containerd-shim"), false},
	} {
		for _, config := range []string{"", existing} {
			t.Run(name+", "+config, func(t *testing.T) {
				doc := decoded(t, head+"spec: {criConfig: {name: containerd, cgroupDriver: systemd, containerd: {sandboxImage: a.b/pause:1}}, files: ["+c.file+"]}")
				var texts []string
				for _, version := range []string{"", "2.2.9"} {
					facts := component.Facts{Hostname: "x", ContainerdVersion: version, ContainerdConfig: config}
					st, err := Translate(doc, facts)
					if err != nil {
						t.Fatal(err)
					}
					at := containerd.ConfigFile
					if config != "" {
						at = containerd.ChangesFile
					}
					texts = append(texts, string(golden.File(t, st, at).Content.Data()))
				}
				if d := cmp.Diff(texts[0], texts[1]); (d == "") != c.same {
					t.Error(d)
				}
			})
		}
	}
}

// A document that configures containerd says more of its unit than the name.
func TestConfiguredIsNotOnlyMentioned(t *testing.T) {
	for cri, want := range map[string]bool{"": true, "criConfig: {name: containerd, cgroupDriver: systemd}, ": false} {
		st, err := Translate(decoded(t, head+"spec: {"+cri+"units: [{name: containerd.service}]}"), component.Facts{Hostname: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if u := st.Lookup(desired.UnitID(containerd.Unit)).(*desired.Unit); u.Mentioned != want {
			t.Errorf("%q: mentioned %v", cri, u.Mentioned)
		}
	}
}
