package osc

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/desired"
)

// The agent stays itself; what it reads, and all else, is applied.
func TestKeepAgentOut(t *testing.T) {
	doc := decoded(t, head+`spec:
  files:
  - {path: /opt/bin/gardener-node-agent, content: {inline: {data: elf}}}
  - {path: /var/lib/gardener-node-agent/config-v1.0.0.yaml, content: {inline: {data: x}}}
  - {path: /etc/a, content: {inline: {data: x}}}
  units:
  - name: gardener-node-agent.service
    content: "[Service]\nExecStart=/bin/false\n"
    dropIns: [{name: 10-x.conf, content: "[Service]\nNice=1\n"}]
    filePaths: [/opt/bin/gardener-node-agent, /var/lib/gardener-node-agent/config-v1.0.0.yaml]
  - {name: a.service, content: "[Service]\nExecStart=/bin/true\n", filePaths: [/etc/a]}
`)
	st, err := Translate(doc, component.Facts{})
	if err != nil {
		t.Fatal(err)
	}
	noted := len(st.Unused)
	KeepAgentOut(st, "/opt/bin/gardener-node-agent")
	var got []desired.ID
	for _, r := range st.Resources {
		got = append(got, r.ID())
	}
	want := []desired.ID{"file:/etc/a", "file:/etc/systemd/system/a.service", "file:/var/lib/gardener-node-agent/config-v1.0.0.yaml", "unit:a.service"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if n := len(st.Unused) - noted; n != 4 {
		t.Errorf("%d of 4 notes: %v", n, st.Unused)
	}
	if err := st.Seal(); err != nil {
		t.Error(err)
	}
}

// What comes out of the agent's image besides it stays.
func TestKeepAgentOutOfAnImage(t *testing.T) {
	doc := decoded(t, head+`spec:
  files:
  - {path: /opt/bin/gardener-node-agent, content: {imageRef: {image: "a.b/c:v1", filePathInImage: /agent}}}
  - {path: /opt/bin/other, content: {imageRef: {image: "a.b/c:v1", filePathInImage: /other}}}
status:
  extensionFiles:
  - {path: /usr/bin/berth, content: {imageRef: {image: "a.b/c:v1", filePathInImage: /berth}}}
  - {path: /usr/bin/alone, content: {imageRef: {image: "a.b/d:v1", filePathInImage: /berth}}}
`)
	st, err := Translate(doc, component.Facts{})
	if err != nil {
		t.Fatal(err)
	}
	st.Unused = nil
	KeepAgentOut(st, "/opt/bin/gardener-node-agent", "/usr/bin/berth", "/usr/bin/alone")
	a, ok := st.Lookup(desired.ArtifactID("a.b/c:v1")).(*desired.Artifact)
	if !ok || a.Field != "spec.files[1].content.imageRef" {
		t.Fatalf("%+v", a)
	}
	if d := cmp.Diff([]string{"/opt/bin/other"}, a.FilePaths()); d != "" {
		t.Error(d)
	}
	if other := st.Lookup(desired.ArtifactID("a.b/d:v1")); other != nil {
		t.Errorf("%+v", other)
	}
	var noted []string
	for _, n := range st.Unused {
		noted = append(noted, n.Path)
	}
	slices.Sort(noted)
	want := []string{"spec.files[0].content.imageRef", "status.extensionFiles[0].content.imageRef", "status.extensionFiles[1].content.imageRef"}
	if d := cmp.Diff(want, noted); d != "" {
		t.Error(d)
	}
	if err := st.Seal(); err != nil {
		t.Error(err)
	}
}
