package kubelet

import (
	"regexp"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/desired"
)

// read is what a kubelet that is registered reads of a file of its own.
func read(t *testing.T, s Settings, at string) string {
	t.Helper()
	rs, err := Resources(s)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	var unread []string
	for _, r := range rs {
		switch r := r.(type) {
		case *desired.File:
			if r.Path == at {
				text = string(r.Content.Data())
			}
		case *desired.Unit:
			unread = r.Unread[at]
		}
	}
	if text == "" || len(unread) == 0 {
		t.Fatalf("%s: %q, unread %q", at, text, unread)
	}
	return regexp.MustCompile("(?:"+strings.Join(unread, ")|(?:")+")").ReplaceAllString(text, "")
}

// Labels and taints that change, come or go leave what kubelet reads as it is, and
// nothing else does.
func TestRegistrationOnly(t *testing.T) {
	flags := func(more ...string) Settings {
		s := Settings{Version: "1.36.3", Hostname: "n", Config: []byte(`{}`), Flags: map[string]string{}, Cluster: &Cluster{Server: "https://api", CA: []byte("x")}}
		for _, f := range more {
			name, value, _ := strings.Cut(f, "=")
			s.Flags[name] = value
		}
		return s
	}
	config := func(text string) Settings {
		s := flags()
		s.Config = []byte(text)
		return s
	}
	const taints, taint = "--register-with-taints=", "--register-with-taints=a=b:NoSchedule,c:NoExecute"
	some := `"registerWithTaints":[{"key":"a","effect":"NoSchedule"},{"key":"b","effect":"NoExecute"}]`
	for name, c := range map[string]struct {
		at   string
		a, b Settings
		same bool
	}{
		"taint alone":            {FlagsFile, flags(), flags(taint), true},
		"no taint by flag":       {FlagsFile, flags(), flags(taints), true},
		"another taint":          {FlagsFile, flags(taint), flags("--register-with-taints=d:NoSchedule"), true},
		"taint first":            {FlagsFile, flags("--v=2"), flags(taint, "--v=2"), true},
		"taint last":             {FlagsFile, flags("--max-pods=2"), flags(taint, "--max-pods=2"), true},
		"taint between":          {FlagsFile, flags("--max-pods=2", "--v=2"), flags(taint, "--max-pods=2", "--v=2"), true},
		"label by flag":          {FlagsFile, flags("--v=2"), flags("--node-labels=a=b,c=d", "--v=2"), true},
		"taint, and a flag":      {FlagsFile, flags("--v=2"), flags(taint, "--v=3"), false},
		"a flag of another name": {FlagsFile, flags(), flags("--register-with-others=a"), false},
		"field":                  {ConfigFile, config(`{"maxPods":1,"seccompDefault":true}`), config(`{"maxPods":1,` + some + `,"seccompDefault":true}`), true},
		"field alone":            {ConfigFile, config(`{}`), config(`{` + some + `}`), true},
		"empty field":            {ConfigFile, config(`{` + some + `,"z":[]}`), config(`{"registerWithTaints":[],"z":[]}`), true},
		"field is null":          {ConfigFile, config(`{"z":[1]}`), config(`{"registerWithTaints":null,"z":[1]}`), true},
		"field, and another":     {ConfigFile, config(`{"z":[1]}`), config(`{` + some + `,"z":[2]}`), false},
		"one of that name below": {ConfigFile, config(`{"z":{"registerWithTaints":[]}}`), config(`{"z":{}}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := read(t, c.a, c.at), read(t, c.b, c.at); (a == b) != c.same {
				t.Errorf("%s\n%s", a, b)
			}
		})
	}
	labels := flags()
	labels.Labels = map[string]string{"x": "y"}
	if a, b := read(t, flags(), FlagsFile), read(t, labels, FlagsFile); a != b {
		t.Errorf("labels:\n%s\n%s", a, b)
	}
}
