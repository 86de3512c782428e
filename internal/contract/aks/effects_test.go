package aks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/golden"
	"github.com/berth-dev/berth/internal/component/gpu"
	"github.com/berth-dev/berth/internal/desired"
)

// neverInForce are the fields that no document gives an effect on a Linux machine.
// The list may have ten entries, each with its reason.
var neverInForce = map[string]string{
	"bootstrapping_config.cluster_join_method":       "how the certificate comes is bootstrapping_auth_method's matter",
	"workload_runtime":                               "there is one runtime of workloads, containers",
	"disable_custom_data":                            "it is for whoever makes the machine",
	"is_vhd":                                         "what the image holds is looked at",
	"gpu_config.gpu_device_plugin":                   "enable_managed_gpu says it",
	"gpu_config.enable_amd_gpu":                      "the machine's size says it",
	"gpu_config.managed_gpu_experience_afec_enabled": "enable_managed_gpu says it",
}

// readOnly are fields with one value each: the document is refused with another.
var readOnly = map[string]string{"version": "v2", kubeletFile + "kind": "Other", kubeletFile + "api_version": "v2"}

// TestEveryFieldHasItsEffect sets each field of the contract in a document where it counts and tells what
// becomes another: resources of the desired state, with the lines of files, or a term of the run.
func TestEveryFieldHasItsEffect(t *testing.T) {
	full, fields := sample(t, "full.json"), 0
	seen := map[protoreflect.FullName]bool{}
	var rows, lines []string
	for _, f := range allFields((&aksnodeconfigv1.Configuration{}).ProtoReflect().Descriptor(), "") {
		if !seen[f.fd.FullName()] {
			seen[f.fd.FullName()], fields = true, fields+1
		}
		if f.fd.Message() != nil && !isMapOfText(f.fd) {
			continue // its own fields say it
		}
		e := effectOf(t, full, f)
		lines = append(lines, f.path+"\n"+e.detail())
		rows = append(rows, e.row(f))
	}
	if at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, nobody) }); at >= 0 {
		t.Errorf("something is written that has no reader: %s", lines[at])
	}
	if fields != 257 {
		t.Errorf("the contract has %d fields", fields)
	}
	if len(neverInForce) > 10 {
		t.Errorf("%d fields are never in force", len(neverInForce))
	}
	golden.Check(t, "effects.txt", strings.Join(lines, ""))
	golden.Region(t, "../../../docs/contracts/aks.md", "effects",
		"| field | what it is | where it is in force | read by | Kubernetes |\n|---|---|---|---|---|\n"+strings.Join(rows, ""))
}

// aField is one field by its path; * stands for the key of a map of messages.
type aField struct {
	path string
	fd   protoreflect.FieldDescriptor
}

func allFields(md protoreflect.MessageDescriptor, at string) []aField {
	var out []aField
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		f := aField{at + string(fd.Name()), fd}
		out = append(out, f)
		switch {
		case fd.IsMap() && fd.MapValue().Message() != nil:
			out = append(out, allFields(fd.MapValue().Message(), f.path+".*.")...)
		case isSingleMessage(fd):
			out = append(out, allFields(fd.Message(), f.path+".")...)
		}
	}
	return out
}

func isMapOfText(fd protoreflect.FieldDescriptor) bool {
	return fd.IsMap() && fd.MapValue().Message() == nil
}

// anEffect is what a field does in its document.
type anEffect struct {
	// changes are what differs, by the id of a resource or the name of a term.
	changes map[string][]string
	// without says why there is none.
	without string
	// since and until are the minor versions of Kubernetes between which there is one.
	since, until string
}

func effectOf(t *testing.T, full *aksnodeconfigv1.Configuration, f aField) anEffect {
	t.Helper()
	e := effectIn(t, full, f, "")
	if !strings.HasPrefix(f.path, "kubelet_config.") && !strings.HasPrefix(f.path, "service_account_") || len(e.changes) == 0 {
		return e // no version of kubelet takes it otherwise
	}
	counts := func(minor int) bool { return len(effectIn(t, full, f, "1."+strconv.Itoa(minor)+".3").changes) > 0 }
	const first, last = 26, 37
	switch old, recent := counts(first), counts(last); {
	case old && !recent:
		e.until = "1." + strconv.Itoa(first+sort.Search(last-first, func(i int) bool { return !counts(first + i) })-1)
	case recent && !old:
		e.since = "1." + strconv.Itoa(first+sort.Search(last-first, func(i int) bool { return counts(first + i) }))
	}
	return e
}

func effectIn(t *testing.T, full *aksnodeconfigv1.Configuration, f aField, version string) anEffect {
	t.Helper()
	base, facts := documentFor(t, f.path)
	if version != "" {
		base.KubernetesVersion = version
	}
	if f.path == kubeletFile+"streaming_connection_idle_timeout" && version == "" {
		base.KubernetesVersion = "1.33.2"
	}
	with := proto.CloneOf(base)
	setField(t, with.ProtoReflect(), full.ProtoReflect(), f.path)
	if other, ok := together[f.path]; ok {
		setField(t, with.ProtoReflect(), full.ProtoReflect(), other)
	}
	after := decoded(t, with)
	if other, ok := readOnly[f.path]; ok {
		refused := proto.CloneOf(with)
		overrideText(refused.ProtoReflect(), f.path, other)
		if _, err := Decode(encoded(t, refused)); err == nil {
			t.Errorf("%s: %s is accepted", f.path, other)
		}
		return anEffect{without: "the document is refused with another value"}
	}
	changed := translated(t, after, facts)
	e := anEffect{changes: differences(specsOf(t, base, facts), specs(t, changed))}
	if a, b := TermsOf(encoded(t, base)), TermsOf(encoded(t, with)); a != b {
		e.changes["run"] = []string{fmt.Sprintf("%+v", b)}
	}
	if len(e.changes) == 0 {
		e.without = withoutEffect(t, f.path, changed, version == "")
	}
	return e
}

// withoutEffect is why a field does nothing; it is in one list, and reported.
func withoutEffect(t *testing.T, p string, st *desired.State, report bool) string {
	t.Helper()
	unused := slices.ContainsFunc(st.Unused, func(n desired.FieldNote) bool { return n.Path == p && n.Reason != "" })
	reason, never := neverInForce[p]
	switch {
	case slices.Contains(st.Unhandled, p):
		t.Errorf("%s is not acted on", p)
	case never && unused:
		return "never: " + reason
	case report:
		t.Errorf("%s changes nothing where it should: unused %v, never in force %v", p, unused, never)
	}
	return ""
}

func (e anEffect) detail() string {
	var b strings.Builder
	if e.without != "" {
		b.WriteString("  " + e.without + "\n")
	}
	for _, id := range slices.Sorted(maps.Keys(e.changes)) {
		b.WriteString("  " + id + "  [" + readerOf(id) + "]\n")
		for _, l := range e.changes[id] {
			b.WriteString("    " + l + "\n")
		}
	}
	return b.String()
}

func (e anEffect) row(f aField) string {
	where, readers := e.without, []string{}
	if len(e.changes) > 0 {
		where = strings.Join(largest(e.changes), ", ")
	}
	for _, id := range slices.Sorted(maps.Keys(e.changes)) {
		if r := readerOf(id); !slices.Contains(readers, r) {
			readers = append(readers, r)
		}
	}
	versions := ""
	switch {
	case e.since != "":
		versions = "since " + e.since
	case e.until != "":
		versions = "until " + e.until
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", f.path, commentOf(f.fd), where, strings.Join(readers, ", "), versions)
}

// largest are at most three of the resources, those that hold most first.
func largest(changes map[string][]string) []string {
	rank := func(id string) int {
		return slices.Index([]string{"directory", "unit", "node", "credential", "check", "nftables", "image", "artifact", "trust", "block", "sysctl", "file"}, kindOf(id))
	}
	ids := slices.SortedFunc(maps.Keys(changes), func(a, b string) int { return cmp.Or(rank(b)-rank(a), cmp.Compare(a, b)) })
	more := ""
	if len(ids) > 3 {
		more = fmt.Sprintf(" and %d more", len(ids)-3)
		ids = ids[:3]
	}
	for i, id := range ids {
		ids[i] = "`" + strings.TrimPrefix(id, "file:") + "`"
		if id == "run" {
			ids[i] = "the run itself"
		}
	}
	ids[len(ids)-1] += more
	return ids
}

func kindOf(id string) string {
	kind, _, _ := strings.Cut(id, ":")
	return kind
}

// readers are who reads what a field becomes, by the beginning of a resource's id; the longest counts.
var readers = map[string]string{
	"run":                              "berth",
	"artifact:":                        "berth",
	"image:":                           "containerd",
	"unit:":                            "systemd",
	"check:":                           "berth",
	"credential:":                      "kubelet",
	"node:":                            "API server",
	"directory:":                       "kernel",
	"trust:":                           "update-ca-certificates",
	"sysctl:":                          "kernel",
	"module:":                          "kernel",
	"nftables:":                        "kernel",
	"sshd:":                            "sshd",
	"podnetwork:":                      "containerd",
	"serving:":                         "kubelet",
	"link:":                            "kernel",
	"swap:":                            "kernel",
	"sysfs:":                           "kernel",
	"block:/etc/environment":           "pam_env",
	"block:/etc/hosts":                 "the resolver of the C library, and Go's",
	"file:/etc/default/":               "kubelet",
	"file:/etc/kubernetes/":            "kubelet",
	"file:/etc/kubernetes/azure.json":  "cloud provider, credential provider",
	"file:/var/lib/kubelet/":           "kubelet",
	"file:/etc/containerd/":            "containerd",
	"file:/etc/cni/":                   "containerd",
	"file:/etc/modules-load.d/":        "systemd-modules-load",
	"file:/etc/systemd/":               "systemd",
	"file:/etc/sysctl.d/":              "systemd-sysctl",
	"file:/etc/tmpfiles.d/":            "systemd-tmpfiles",
	"file:/etc/motd":                   "pam_motd",
	"file:/etc/apt/":                   "apt",
	"file:/etc/ssh/":                   "sshd",
	"file:/etc/berth/":                 "berth",
	"file:/etc/berth/proxy.env":        "systemd",
	"file:/etc/berth/realm-password":   "realmd",
	"file:/opt/azure/containers/":      "the image's launcher",
	"file:/opt/azure/outbound":         "the image's checks",
	"file:/opt/azure/containers/local": "CoreDNS",
	"file:/etc/default/secure":         "the cloud's bootstrap client",
	"file:" + gpu.Marker:               "the image's own checks",
}

// nobody is the reader of what has none.
const nobody = "nobody: "

func readerOf(id string) string {
	longest := ""
	for prefix := range readers {
		if strings.HasPrefix(id, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	if longest == "" {
		return nobody + id
	}
	return readers[longest]
}

// differences are the resources of one state that the other does not have as they are.
func differences(before, after map[desired.ID]map[string]string) map[string][]string {
	out := map[string][]string{}
	for id := range after {
		if lines := differing(before[id], after[id]); lines != nil {
			out[string(id)] = lines
		}
	}
	for id := range before {
		if after[id] == nil {
			out[string(id)] = []string{"gone"}
		}
	}
	return out
}

// seenBases are what documents become of which many fields are set in turn.
var seenBases = map[string]map[desired.ID]map[string]string{}

func specsOf(t *testing.T, cfg *aksnodeconfigv1.Configuration, facts component.Facts) map[desired.ID]map[string]string {
	t.Helper()
	key := fmt.Sprintf("%s%+v", encoded(t, cfg), facts)
	if seenBases[key] == nil {
		seenBases[key] = specs(t, translated(t, decoded(t, cfg), facts))
	}
	return seenBases[key]
}

// specs are what is said of each resource but for its order and the field that it comes from.
func specs(t *testing.T, st *desired.State) map[desired.ID]map[string]string {
	t.Helper()
	out := map[desired.ID]map[string]string{}
	for _, r := range st.Resources {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var parts map[string]json.RawMessage
		if err := json.Unmarshal(b, &parts); err != nil {
			t.Fatal(err)
		}
		out[r.ID()] = map[string]string{}
		for key, value := range parts {
			if key != "after" && key != "field" {
				out[r.ID()][key] = string(value)
			}
		}
		if f, ok := r.(*desired.File); ok {
			out[r.ID()]["content"] = shownContent(f)
		}
	}
	return out
}

// shownContent is a file's text; of a secret the names of its lines, and that they differ.
func shownContent(f *desired.File) string {
	if !f.Content.IsSecret() {
		return string(f.Content.Data())
	}
	var out []string
	for line := range strings.Lines(string(f.Content.Data())) {
		name, value, found := strings.Cut(line, ":")
		if !found {
			name, value, found = strings.Cut(line, "=")
		}
		if !found {
			name, value = "", line
		}
		out = append(out, strings.TrimSpace(name)+" "+desired.Redact([]byte(value)))
	}
	return strings.Join(out, "\n")
}

func differing(before, after map[string]string) []string {
	if before == nil {
		return []string{"new"}
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(after)) {
		switch {
		case before[key] == after[key]:
		case key == "content":
			out = append(out, addedLines(before[key], after[key])...)
		default:
			out = append(out, key)
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			out = append(out, "no "+key)
		}
	}
	slices.Sort(out)
	return out
}

// addedLines are the words of a text that the other has not, six at most.
func addedLines(before, after string) []string {
	had := map[string]bool{}
	for line := range strings.Lines(before) {
		had[line] = true
		for word := range strings.FieldsSeq(line) {
			had[word] = true
		}
	}
	out := []string{}
	for line := range strings.Lines(after) {
		if had[line] {
			continue
		}
		var words []string
		for word := range strings.FieldsSeq(line) {
			if !had[word] || strings.HasPrefix(strings.TrimSpace(line), "\"") {
				words = append(words, word)
			}
		}
		if text := shownWords(words); text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return []string{"lines taken away"}
	}
	if len(out) > 6 {
		out = append(out[:6], "…")
	}
	return out
}

// shownWords leaves out what is secret, encoded, or a bracket alone.
func shownWords(words []string) string {
	secret := slices.ContainsFunc(words, isRedacted)
	words = slices.DeleteFunc(words, func(w string) bool { return isRedacted(w) || len(w) == 64 || strings.Trim(w, "{}[],") == "" })
	text := strings.Join(words, " ")
	if text == "" && secret {
		return "a line of a secret"
	}
	return text[:min(len(text), 90)]
}

func isRedacted(word string) bool { return strings.HasPrefix(word, "REDACTED#") }

func encoded(t *testing.T, cfg *aksnodeconfigv1.Configuration) []byte {
	t.Helper()
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decoded(t *testing.T, cfg *aksnodeconfigv1.Configuration) *Document {
	t.Helper()
	doc, err := Decode(encoded(t, cfg))
	if err != nil {
		t.Fatalf("%v: %+v", err, cfg)
	}
	return doc
}

func translated(t *testing.T, doc *Document, facts component.Facts) *desired.State {
	t.Helper()
	st, err := Translate(doc, facts)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// setField gives a field the value that it has in the full sample, or another where that one says nothing.
func setField(t *testing.T, m, full protoreflect.Message, p string) {
	t.Helper()
	if p == "kubernetes_ca_cert" {
		m.Set(m.Descriptor().Fields().ByName("kubernetes_ca_cert"), full.Get(full.Descriptor().Fields().ByName("custom_ca_certs")).List().Get(0))
		return
	}
	if text, ok := otherSample[p]; ok {
		overrideText(m, p, text)
		return
	}
	name, rest, nested := strings.Cut(p, ".")
	fd := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	switch {
	case nested && fd.IsMap():
		zone, sent := protoreflect.ValueOfString(aZone).MapKey(), protoreflect.ValueOfString("cluster.local").MapKey()
		setField(t, m.Mutable(fd).Map().Mutable(zone).Message(), full.Get(fd).Map().Get(sent).Message(), strings.TrimPrefix(rest, "*."))
	case nested:
		setField(t, m.Mutable(fd).Message(), full.Get(fd).Message(), rest)
	case !full.Has(fd):
		t.Fatalf("the full sample has no %s", p)
	default:
		m.Set(fd, full.Get(fd))
	}
}

// overrideText sets a field to what a text says.
func overrideText(m protoreflect.Message, p, text string) {
	name, rest, nested := strings.Cut(p, ".")
	fd := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	if nested {
		overrideText(m.Mutable(fd).Message(), rest, text)
		return
	}
	m.Set(fd, valueOf(fd, text))
}

func valueOf(fd protoreflect.FieldDescriptor, text string) protoreflect.Value {
	number, _ := strconv.ParseFloat(text, 64)
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(text == "true")
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(number))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(number)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(fd.Enum().Values().ByName(protoreflect.Name(text)).Number())
	}
	return protoreflect.ValueOfString(text)
}

// commentOf is the first sentence about a field in its .proto.
func commentOf(fd protoreflect.FieldDescriptor) string {
	file := filepath.Join("../../../api", path.Base(path.Dir(path.Dir(fd.ParentFile().Path()))), "v1", path.Base(fd.ParentFile().Path()))
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	_, body, _ := strings.Cut(string(text), "message "+string(fd.Parent().Name())+" {\n")
	var comment []string
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		if said, ok := strings.CutPrefix(line, "// "); ok {
			comment = append(comment, said)
			continue
		}
		if strings.Contains(" "+line, " "+string(fd.Name())+" = ") {
			break
		}
		comment = nil
	}
	return strings.TrimSuffix(strings.TrimSpace(strings.ReplaceAll(firstSentence(strings.Join(comment, " ")), "|", "or")), ".")
}

// firstSentence ends at the first full stop that is none of an abbreviation.
func firstSentence(text string) string {
	for at := 0; ; {
		i := strings.Index(text[at:], ". ")
		if i < 0 {
			return text
		}
		at += i
		if !strings.HasSuffix(text[:at], "e.g") && !strings.HasSuffix(text[:at], "i.e") {
			return text[:at]
		}
		at += 2
	}
}

func TestFirstSentence(t *testing.T) {
	for text, want := range map[string]string{
		"One. Two.":                             "One",
		"A size, e.g. \"D2\"; it decides. Two.": "A size, e.g. \"D2\"; it decides",
		"One, i.e. all.":                        "One, i.e. all.",
		"":                                      "",
	} {
		if got := firstSentence(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
