package desired

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func sample() *State {
	s := &State{Owner: OwnerAKS}
	s.Add(
		&Unit{Base: Base{After: []ID{FileID("/etc/b")}}, Name: "kubelet.service", Activation: Started, Triggers: []string{"/etc/b"}},
		&File{Path: "/etc/b", Content: Text("b\n"), Mode: 0o644, Life: Managed},
		&File{Path: "/etc/a", Content: SecretBytes([]byte("hunter2")), Mode: 0o600, Life: Managed},
	)
	return s
}

func TestSealSortsAndPrintsTheSame(t *testing.T) {
	a, b := sample(), sample()
	b.Resources[0], b.Resources[2] = b.Resources[2], b.Resources[0]
	for _, s := range []*State{a, b} {
		if err := s.Seal(); err != nil {
			t.Fatal(err)
		}
	}
	ta, errA := json.Marshal(a)
	tb, errB := json.Marshal(b)
	if errA != nil || errB != nil || string(ta) != string(tb) {
		t.Fatalf("%v, %v: %s\n%s", errA, errB, ta, tb)
	}
	if got := a.Resources[0].ID(); got != "file:/etc/a" {
		t.Fatalf("first is %s", got)
	}
	if a.Lookup(UnitID("kubelet.service")) == nil || a.Lookup("file:/nowhere") != nil {
		t.Fatal("lookup is wrong")
	}
}

func TestSealRefuses(t *testing.T) {
	ca := "-----BEGIN CERTIFICATE-----"
	for name, c := range map[string]struct {
		r    Resource
		want string
	}{
		"relative path":       {&File{Path: "etc/x", Mode: 0o644, Life: Managed}, "not absolute"},
		"unclean path":        {&File{Path: "/etc/../x", Mode: 0o644, Life: Managed}, "clean"},
		"wide secret":         {&File{Path: "/x", Content: SecretBytes(nil), Mode: 0o640, Life: Managed}, "secret"},
		"transient, no end":   {&File{Path: "/x", Mode: 0o600, Life: Transient}, "transient"},
		"no life":             {&File{Path: "/x", Mode: 0o600}, "life"},
		"unknown reference":   {&File{Base: Base{After: []ID{"file:/y"}}, Path: "/x", Life: Managed}, "not in the state"},
		"link to nothing":     {&Link{Path: "/x"}, "target"},
		"unit in any state":   {&Unit{Name: "x.service"}, "says nothing"},
		"unit with a path":    {&Unit{Name: "a/b.service", Activation: Started}, "unit name"},
		"template that runs":  {&Unit{Name: "io.example.proxy@.service", Activation: Started}, "is a template"},
		"module name":         {&Module{Name: "x; y", Evidence: []string{"/x"}}, "module name"},
		"module no evidence":  {&Module{Name: "overlay"}, "evidence"},
		"sysctl key":          {&Sysctl{Key: "../x", Value: "1"}, "kernel parameter"},
		"sysctl value":        {&Sysctl{Key: "a.b"}, "value"},
		"anchor name":         {&TrustAnchor{Name: "../x", PEM: ca}, "name"},
		"check without time":  {&Check{Name: CheckAPIServer}, "budget"},
		"check of two kinds":  {&Check{Name: CheckOutbound, Host: "api", Command: []string{"true"}, Timeout: time.Second}, "not both"},
		"artifact no files":   {&Artifact{Name: "kubelet"}, "files"},
		"credential, no node": {&ClientCertificate{Kubeconfig: "/x", Timeout: time.Second}, "node name"},
		"node, no unit":       {&NodeObject{Name: "n1", Kubeconfig: "/x"}, "unit that registers"},
		"node with a path":    {&NodeObject{Name: "a/b", Kubeconfig: "/x", Unit: "kubelet.service"}, "without slash"},
		"node, no label name": {&NodeObject{Name: "n1", Kubeconfig: "/x", Unit: "kubelet.service", Labels: map[string]string{"": "1"}}, "without name"},
		"network, no parts":   {&PodNetwork{File: "/x", Template: "/y", Kubeconfig: "/z", Unit: "kubelet.service", Node: "n1"}, "parts"},
		"sshd, no settings":   {&SSHD{Program: "/usr/sbin/sshd", Path: "/etc/x"}, "proves nothing"},
		"sshd, odd keyword":   {&SSHD{Program: "/usr/sbin/sshd", Path: "/etc/x", Settings: map[string]string{"A b": "no"}}, "setting of sshd"},
		"sshd, two lines":     {&SSHD{Program: "/usr/sbin/sshd", Path: "/etc/x", Settings: map[string]string{"a": "no\nb"}}, "setting of sshd"},
		"sshd, no program":    {&SSHD{Path: "/etc/x", Settings: map[string]string{"a": "no"}}, "path"},
		"unit, only triggers": {&Unit{Name: "a.service", Triggers: []string{"/x"}}, "says nothing"},
		"first keys":          {&Block{Path: "/x", Name: "a", Keys: map[string]string{"A": "1"}, First: true}, "only lines can be first"},
		"serving, no names":   {&ServingCertificate{CertFile: "/x", KeyFile: "/y"}, "name"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &State{}
			s.Add(c.r)
			if err := s.Seal(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestSealRefusesTwins(t *testing.T) {
	s := sample()
	s.Add(&File{Path: "/etc/a", Mode: 0o600, Life: Managed})
	if err := s.Seal(); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Fatalf("error %v", err)
	}
}

func TestSealRefusesClashes(t *testing.T) {
	file := func(p string) Resource { return &File{Path: p, Mode: 0o600, Life: Managed, Base: Base{Field: "f"}} }
	credential := func(p, dir string) Resource {
		return &ClientCertificate{Base: Base{Field: "c"}, NodeName: "n", Server: "s", CA: "c", CAFile: "/ca", Kubeconfig: p, CertDir: dir}
	}
	for name, c := range map[string]struct {
		a, b Resource
		want string // path; empty: no clash
	}{
		"credential over a file":  {file("/etc/default/kubelet"), credential("/etc/default/kubelet", "/pki"), "/etc/default/kubelet"},
		"file below a file":       {file("/etc/x"), file("/etc/x/y"), "/etc/x"},
		"directory over a file":   {file("/etc/x"), &Directory{Path: "/etc/x"}, "/etc/x"},
		"certificates in a file":  {file("/pki"), credential("/k", "/pki"), "/pki"},
		"certificate and key":     {file("/x"), &ServingCertificate{CertFile: "/c", KeyFile: "/c", Names: []string{"n"}}, "/c"},
		"program over a file":     {file("/opt/a"), &Artifact{Name: "a", Files: []ArtifactFile{{Path: "/opt/a"}}}, "/opt/a"},
		"certificates in theirs":  {&Directory{Path: "/pki"}, credential("/pki/k", "/pki"), ""},
		"part of a file":          {file("/etc/x"), &Block{Path: "/etc/x", Name: "a", Lines: "a\n"}, "/etc/x"},
		"part below a file":       {file("/etc/x"), &Block{Path: "/etc/x/y", Name: "a", Lines: "a\n"}, "/etc/x"},
		"file below a part":       {&Block{Path: "/etc/x", Name: "a", Lines: "a\n"}, file("/etc/x/y"), "/etc/x"},
		"part of a directory":     {&Block{Path: "/etc/x", Name: "a", Lines: "a\n"}, &Directory{Path: "/etc/x"}, "/etc/x"},
		"part below a part":       {&Block{Path: "/etc/x", Name: "a", Lines: "a\n"}, &Block{Path: "/etc/x/y", Name: "a", Lines: "a\n"}, "/etc/x"},
		"two parts":               {&Block{Path: "/etc/x", Name: "a", Lines: "a\n"}, &Block{Path: "/etc/x", Name: "b", Lines: "a\n"}, ""},
		"neighbours, like prefix": {file("/etc/x"), file("/etc/xy"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &State{}
			s.Add(c.a, c.b)
			var got *ResourceError
			errors.As(s.Seal(), &got)
			switch {
			case c.want == "" && got != nil:
				t.Error(got)
			case c.want != "" && (got == nil || got.Path != c.want):
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A secret must not show whichever way it is printed.
func TestSecretsNeverPrint(t *testing.T) {
	s := Secret("hunter2")
	c := SecretBytes([]byte("hunter2"))
	j, err := json.Marshal(map[string]any{"s": s, "c": c})
	if err != nil {
		t.Fatal(err)
	}
	st, err := sample().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprint(s, c), fmt.Sprintf("%v %+v %#v %s %q", s, s, s, s, s), fmt.Sprintf("%v %+v %#v", c, c, c),
		fmt.Sprintf("%+v", struct{ S Secret }{s}), string(j), string(st),
	} {
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "REDACTED#f52f") {
			t.Errorf("printed %q", text)
		}
	}
	if s.Reveal() != "hunter2" {
		t.Error("the secret is lost")
	}
}

func TestModePrintsOctal(t *testing.T) {
	b, err := json.Marshal(Mode(0o600))
	if err != nil || string(b) != `"0600"` {
		t.Fatalf("%s, %v", b, err)
	}
}
