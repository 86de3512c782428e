package osc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/desired"
)

// wantErrors compares the paths of a refusal, in order.
func wantErrors(t *testing.T, err error, paths ...string) {
	t.Helper()
	e, ok := errors.AsType[*DocumentError](err)
	if !ok {
		t.Fatalf("not refused: %v", err)
	}
	var got []string
	for _, f := range e.Errors {
		got = append(got, f.Field)
	}
	if diff := cmp.Diff(paths, got); diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func inline(path string) string { return "{path: " + path + ", content: {inline: {data: x}}}" }

func TestRefused(t *testing.T) {
	b64 := func(data string) string {
		return "spec: {files: [{path: /a, content: {inline: {encoding: b64, data: \"" + data + "\"}}}]}"
	}
	file := func(path string) string { return "spec: {files: [" + inline(path) + "]}" }
	unit := func(text string) string { return "spec: {units: [" + text + "]}" }
	cri := func(text string) string { return "spec: {criConfig: {name: containerd, containerd: {" + text + "}}}" }
	const inCRI = "spec.criConfig.containerd."
	for name, c := range map[string]struct {
		text  string
		paths []string
	}{
		"another runtime":        {"spec: {criConfig: {name: docker}}", []string{"spec.criConfig.name"}},
		"another driver":         {"spec: {criConfig: {name: containerd, cgroupDriver: none}}", []string{"spec.criConfig.cgroupDriver"}},
		"no sandbox image":       {cri("sandboxImage: \"A b\""), []string{inCRI + "sandboxImage"}},
		"registry without name":  {cri("registries: [{}]"), []string{inCRI + "registries[0].upstream"}},
		"registry is no host":    {cri("registries: [{upstream: a/b}]"), []string{inCRI + "registries[0].upstream"}},
		"registry upwards":       {cri("registries: [{upstream: ..}]"), []string{inCRI + "registries[0].upstream"}},
		"registry twice":         {cri("registries: [{upstream: _default}, {upstream: _default}]"), []string{inCRI + "registries[1].upstream"}},
		"server without scheme":  {cri("registries: [{upstream: a.b, server: a.b}]"), []string{inCRI + "registries[0].server"}},
		"host with a password":   {cri("registries: [{upstream: a.b, hosts: [{url: \"https://u:p@a.b\"}]}]"), []string{inCRI + "registries[0].hosts[0].url"}},
		"unknown capability":     {cri("registries: [{upstream: a.b, hosts: [{url: \"https://a.b\", capabilities: [fly]}]}]"), []string{inCRI + "registries[0].hosts[0].capabilities[0]"}},
		"CA without path":        {cri("registries: [{upstream: a.b, hosts: [{url: \"https://a.b\", caCerts: [ca.pem, \"\"]}]}]"), []string{inCRI + "registries[0].hosts[0].caCerts[0]", inCRI + "registries[0].hosts[0].caCerts[1]"}},
		"host in two ways":       {cri("registries: [{upstream: a.b, hosts: [{url: \"https://a.b\"}, {url: \"https://a.b\", overridePath: true}]}]"), []string{inCRI + "registries[0].hosts[1].url"}},
		"plugin without path":    {cri("plugins: [{}, {path: [a, \"\"]}]"), []string{inCRI + "plugins[0].path", inCRI + "plugins[1].path"}},
		"unknown operation":      {cri("plugins: [{op: move, path: [a]}]"), []string{inCRI + "plugins[0].op"}},
		"removal of values":      {cri("plugins: [{op: remove, path: [a], values: {}}]"), []string{inCRI + "plugins[0].values"}},
		"values are a list":      {cri("plugins: [{path: [a], values: []}]"), []string{inCRI + "plugins[0].values"}},
		"a value of null":        {cri("plugins: [{path: [a], values: {b: [{c: null}]}}]"), []string{inCRI + "plugins[0].values"}},
		"a list for an object":   {"spec: []", []string{"spec"}},
		"an object for a list":   {"spec: {files: {}}", []string{"spec.files"}},
		"a number for a string":  {"spec: {units: [{name: 7}]}", []string{"spec.units[0].name"}},
		"a string for a boolean": {"spec: {units: [{name: a.service, enable: \"true\"}]}", []string{"spec.units[0].enable"}},
		"mode in words":          {"spec: {files: [{path: /a, permissions: rw, content: {inline: {data: x}}}]}", []string{"spec.files[0].permissions"}},
		"mode with a fraction":   {"spec: {files: [{path: /a, permissions: 1.5, content: {inline: {data: x}}}]}", []string{"spec.files[0].permissions"}},
		"negative mode":          {"spec: {files: [{path: /a, permissions: -1, content: {inline: {data: x}}}]}", []string{"spec.files[0].permissions"}},
		"mode beyond all bits":   {"spec: {files: [{path: /a, permissions: 4096, content: {inline: {data: x}}}]}", []string{"spec.files[0].permissions"}},
		"no time":                {"spec: {inPlaceUpdates: {credentialsRotation: {serviceAccountKey: {lastInitiationTime: soon}}}}", []string{"spec.inPlaceUpdates.credentialsRotation.serviceAccountKey.lastInitiationTime"}},
		"metadata":               {"metadata: {labels: 7}", []string{"metadata"}},
		"a key twice":            {"spec: {}\nspec: {}", []string{""}},
		"no YAML":                {"spec: {", []string{""}},
		"no path":                {file(`""`), []string{"spec.files[0].path"}},
		"relative":               {file("a/b"), []string{"spec.files[0].path"}},
		"upwards":                {file("/etc/../a"), []string{"spec.files[0].path"}},
		"upwards at the end":     {file("/etc/.."), []string{"spec.files[0].path"}},
		"directory":              {file("/etc/"), []string{"spec.files[0].path"}},
		"root":                   {file("/"), []string{"spec.files[0].path"}},
		"proc":                   {file("/proc/sys/kernel/panic"), []string{"spec.files[0].path"}},
		"sys in disguise":        {file("//./sys/kernel"), []string{"spec.files[0].path"}},
		"dev":                    {file("/dev/sda"), []string{"spec.files[0].path"}},
		"NUL":                    {file(`"/a\0"`), []string{"spec.files[0].path"}},
		"long name":              {file("/" + strings.Repeat("a", 256)), []string{"spec.files[0].path"}},
		"long path":              {file(strings.Repeat("/abc", 1024)), []string{"spec.files[0].path"}},
		"twice":                  {"spec: {files: [" + inline("/a") + "], }\nstatus: {extensionFiles: [" + inline("/a") + "]}", []string{"status.extensionFiles[0].path"}},
		"twice, one for a host": {"spec: {files: [" + inline("/a") + ", {path: /a, hostName: x, content: {inline: {data: x}}}]}",
			[]string{"spec.files[1].path"}},
		"no content":         {"spec: {files: [{path: /a}]}", []string{"spec.files[0].content"}},
		"two contents":       {"spec: {files: [{path: /a, content: {inline: {data: x}, secretRef: {name: s, dataKey: k}}}]}", []string{"spec.files[0].content"}},
		"no data":            {"spec: {files: [{path: /a, content: {inline: {}}}]}", []string{"spec.files[0].content.inline.data"}},
		"unknown encoding":   {"spec: {files: [{path: /a, content: {inline: {encoding: gzip, data: x}}}]}", []string{"spec.files[0].content.inline.encoding"}},
		"no base64":          {b64("%%%"), []string{"spec.files[0].content.inline.data"}},
		"URL base64":         {b64("_-__"), []string{"spec.files[0].content.inline.data"}},
		"half a secretRef":   {"spec: {files: [{path: /a, content: {secretRef: {name: s}}}]}", []string{"spec.files[0].content.secretRef.dataKey"}},
		"empty imageRef":     {"spec: {files: [{path: /a, content: {imageRef: {}}}]}", []string{"spec.files[0].content.imageRef.image", "spec.files[0].content.imageRef.filePathInImage"}},
		"no image":           {"spec: {files: [{path: /a, content: {imageRef: {image: \"A b\", filePathInImage: /x}}}]}", []string{"spec.files[0].content.imageRef.image"}},
		"directory in image": {"spec: {files: [{path: /a, content: {imageRef: {image: a, filePathInImage: /..}}}]}", []string{"spec.files[0].content.imageRef.filePathInImage"}},
		"unit without name":  {unit("{}"), []string{"spec.units[0].name"}},
		"unit upwards":       {unit("{name: ../a.service}"), []string{"spec.units[0].name"}},
		"unit from an @ on":  {unit("{name: \"@a@b.service\"}"), []string{"spec.units[0].name"}},
		"unit of no type":    {unit("{name: a.conf}"), []string{"spec.units[0].name"}},
		"long unit":          {unit("{name: " + strings.Repeat("a", 250) + ".service}"), []string{"spec.units[0].name"}},
		"empty drop-in":      {unit("{name: a.service, dropIns: [{}]}"), []string{"spec.units[0].dropIns[0].content", "spec.units[0].dropIns[0].name"}},
		"drop-in upwards":    {unit("{name: a.service, dropIns: [{name: ../a.conf, content: x}]}"), []string{"spec.units[0].dropIns[0].name"}},
		"trigger of nobody":  {unit("{name: a.service, filePaths: [/a]}"), []string{"spec.units[0].filePaths[0]"}},
		"all at once": {file("a") + "\nstatus: {extensionUnits: [{name: /}]}",
			[]string{"spec.files[0].path", "status.extensionUnits[0].name"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(head + c.text))
			wantErrors(t, err, c.paths...)
		})
	}
	for text, paths := range map[string][]string{
		strings.Repeat("\x00garbage: [", 100_000): {""}, head + "spec: " + strings.Repeat("[", 500_000): {""}, head + aliases(): {""},
		"apiVersion: v1\nkind: Secret": {"apiVersion", "kind"}, "[]": {""}, "7": {""}, "": {"apiVersion", "kind"}, "\x00\xff": {""},
	} {
		_, err := Decode([]byte(text))
		wantErrors(t, err, paths...)
	}
}

// aliases is a small text that would be a large document.
func aliases() string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), ", "))
	}
	return text
}

// ordered is a list of units with their [Unit] sections.
func ordered(sections ...string) string {
	var out []string
	for i, s := range sections {
		out = append(out, fmt.Sprintf("{name: %c.service, content: \"[Unit]\\n%s\\n[Service]\\nExecStart=/bin/true\\n\"}", 'a'+i, s))
	}
	return head + "spec: {units: [" + strings.Join(out, ", ") + "]}"
}

func TestCyclesOfUnits(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		refused  string
		tolerate string
	}{
		"two":            {ordered(`After=b.service\nRequires=b.service`, `After=a.service\nRequires=a.service`), "a.service, b.service, a.service", ""},
		"three":          {ordered(`After=b.service\nBindsTo=b.service`, `After=c.service\nRequires=c.service`, `After=a.service\nRequires=x.service a.service`), "a.service, b.service, c.service, a.service", ""},
		"behind another": {ordered(`After=b.service`, `After=c.service\nRequires=c.service`, `After=b.service\nRequires=b.service`), "b.service, c.service, b.service", ""},
		"by before":      {ordered(`After=b.service\nRequires=b.service`, `Before=x.service\nRequires=a.service\nAfter=a.service`), "a.service, b.service, a.service", ""},
		"only order":     {ordered(`After=b.service`, `After=a.service`), "", "a.service, b.service, a.service"},
		"only before":    {ordered(`Before=b.service`, `Before=a.service`), "", "a.service, b.service, a.service"},
		"only needs":     {ordered(`Requires=b.service`, `Requires=a.service`), "", ""},
		"a line":         {ordered(`After=b.service\nRequires=b.service`, `After=c.service\nRequires=c.service`, `After=network.target c.service`), "", ""},
		"no unit file":   {ordered(`[[[`, `After=a.service`), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := Decode([]byte(c.text))
			switch {
			case c.refused != "":
				if err == nil || !strings.HasSuffix(err.Error(), c.refused) {
					t.Errorf("taken: %v", err)
				}
			case err != nil:
				t.Error(err)
			case c.tolerate == "" && len(doc.Notes) > 0, c.tolerate != "" && (len(doc.Notes) != 1 || !strings.HasSuffix(doc.Notes[0].Reason, c.tolerate)):
				t.Errorf("%+v", doc.Notes)
			}
		})
	}
	drop := head + `spec: {units: [{name: a.service, dropIns: [{name: x.conf, content: "[Unit]\nAfter=b.service\nRequires=b.service\n"}]}, {name: b.service, content: "[Unit]\nAfter=a.service\nRequires=a.service\n"}]}`
	_, err := Decode([]byte(drop))
	wantErrors(t, err, "spec.units[0]")
}

// Only what systemd reads counts, and only what comes to run.
func TestCyclesOfWhatDoesNotRun(t *testing.T) {
	const aToB, bToA = `[Unit]\nAfter=b.service\nRequires=b.service\n`, `[Unit]\nAfter=a.service\nRequires=a.service\n`
	units := func(a, b string, others ...string) string {
		return head + "spec: {units: [" + strings.Join(append([]string{"{name: a.service, " + a + "}", "{name: b.service, " + b + "}"}, others...), ", ") + "]}"
	}
	off := func(text, how string) string { return how + `, content: "` + text + `"` }
	on := func(text string) string { return `content: "` + text + `"` }
	in := func(name, text string) string { return `dropIns: [{name: ` + name + `, content: "` + text + `"}]` }
	runs := func(how string) string { return `{name: c.service, content: "[Unit]\n` + how + `\n"}` }
	const way = "a.service, b.service, a.service"
	for name, c := range map[string]struct {
		text          string
		refused, told string
	}{
		"neither starts":      {units(off(aToB, "enable: false"), off(bToA, "enable: false")), "", ""},
		"stopped until boot":  {units(off(aToB, "command: stop"), off(bToA, "command: stop")), "", way},
		"stopped, needs one":  {units(off(aToB, "command: stop"), off(bToA, "enable: false")), "", way},
		"one starts":          {units(off(aToB, "enable: false"), on(bToA)), way, ""},
		"one is needed":       {units(off(aToB, "enable: false"), off(bToA, "enable: false"), runs("Requires=a.service")), way, ""},
		"needed further":      {units(off(aToB, "enable: false"), off(bToA, "enable: false"), runs("BindsTo=d.service"), `{name: d.service, enable: false, content: "[Unit]\nRequires=b.service\n"}`), way, ""},
		"one is wanted":       {units(off(aToB, "enable: false"), off(bToA, "enable: false"), runs("Wants=a.service")), "", ""},
		"only after one":      {units(off(aToB, "enable: false"), off(bToA, "enable: false"), runs("After=a.service")), "", ""},
		"order of one off":    {units(off(`[Unit]\nAfter=b.service\n`, "enable: false"), on(`[Unit]\nAfter=a.service\n`)), "", ""},
		"drop-in of no use":   {units(in("x", aToB), on(bToA)), "", ""},
		"hidden drop-in":      {units(in(".x.conf", aToB), on(bToA)), "", ""},
		"drop-in that counts": {units(in("x.conf", aToB), on(bToA)), way, ""},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := Decode([]byte(c.text))
			if c.refused != "" {
				if err == nil || !strings.HasSuffix(err.Error(), c.refused) {
					t.Errorf("taken: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			told := slices.DeleteFunc(slices.Clone(doc.Notes), func(n desired.FieldNote) bool { return !strings.Contains(n.Reason, "starts after") })
			if c.told == "" && len(told) > 0 || c.told != "" && (len(told) != 1 || !strings.HasSuffix(told[0].Reason, c.told)) {
				t.Errorf("%+v", doc.Notes)
			}
		})
	}
}

// What each item says alone is right, and together they can't be.
func TestRefusedTogether(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		paths []string
	}{
		"a file below a file":   {"spec: {files: [" + inline("/a") + "," + inline("/a/b") + "]}", []string{"spec.files[1]"}},
		"a file and definition": {"spec: {files: [" + inline("/etc/systemd/system/a.service") + "], units: [{name: a.service, content: x}]}", []string{"spec.units[0].content"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Translate(decoded(t, head+c.text), component.Facts{})
			wantErrors(t, err, c.paths...)
		})
	}
}

// What working clients may send is taken, and told of.
func TestTolerated(t *testing.T) {
	for name, c := range map[string]struct{ text, path string }{
		"unknown field":     {"spec: {future: 1}", "spec.future"},
		"other case":        {"spec: {Files: 1}", "spec.Files"},
		"unknown below":     {"spec: {files: [{path: /a, owner: root, content: {inline: {data: x}}}]}", "spec.files[0].owner"},
		"unclean path":      {"spec: {files: [" + inline("/etc//./a") + "]}", "spec.files[0].path"},
		"set-id bits":       {"spec: {files: [{path: /a, permissions: 2541, content: {inline: {data: x}}}]}", "spec.files[0].permissions"},
		"unknown command":   {"spec: {units: [{name: a.service, command: reload}]}", "spec.units[0].command"},
		"drop-in of no use": {"spec: {units: [{name: a.service, dropIns: [{name: a, content: x}]}]}", "spec.units[0].dropIns[0].name"},
		"hidden drop-in":    {"spec: {units: [{name: a.service, dropIns: [{name: .a.conf, content: x}]}]}", "spec.units[0].dropIns[0].name"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := decoded(t, head+c.text)
			if len(doc.Notes) != 1 || doc.Notes[0].Path != c.path {
				t.Errorf("%+v", doc.Notes)
			}
		})
	}
	if doc := decoded(t, head+"metadata: {uid: x, managedFields: []}\nspec: {units: null}\nstatus: {}"); len(doc.Notes) != 0 {
		t.Errorf("%+v", doc.Notes)
	}
}

// FuzzDecode: no text is more than refused, and what is taken can be translated or
// is refused with paths.
func FuzzDecode(f *testing.F) {
	f.Add(sample(f, "full.yaml"))
	f.Add([]byte(head + "spec: {units: [{name: a.service}]}"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, err := Decode(b)
		if err == nil {
			_, err = Translate(doc, machine)
		}
		if _, ok := errors.AsType[*DocumentError](err); err != nil && !ok {
			t.Error(err)
		}
	})
}
