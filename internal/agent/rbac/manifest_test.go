package rbac

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admission "k8s.io/api/admissionregistration/v1"
	roles "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite goldens")

func TestManifest(t *testing.T) {
	for name, o := range map[string]Options{
		"published.yaml": {Secrets: []string{"gardener-node-agent-pool-77ac3"}, Others: []string{"shoot-access-logs"}},
		"pool.yaml": {Name: "pool-a", Group: "example.com:pool-a", BootstrapGroup: "system:bootstrappers:pool-a",
			Secrets: []string{"pool-a", "pool-a-old", "pool-a"}, Others: []string{"z", "a", "pool-a"}},
	} {
		got, err := Manifest(o)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		readByTheAPI(t, got)
	}
}

// readByTheAPI reads each document as the API's own type, strictly.
func readByTheAPI(t *testing.T, manifest []byte) {
	t.Helper()
	types := map[string]func() any{
		"ValidatingAdmissionPolicy":        func() any { return &admission.ValidatingAdmissionPolicy{} },
		"ValidatingAdmissionPolicyBinding": func() any { return &admission.ValidatingAdmissionPolicyBinding{} },
		"ClusterRole":                      func() any { return &roles.ClusterRole{} },
		"ClusterRoleBinding":               func() any { return &roles.ClusterRoleBinding{} },
		"Role":                             func() any { return &roles.Role{} },
		"RoleBinding":                      func() any { return &roles.RoleBinding{} },
	}
	seen := map[string]bool{}
	for _, text := range bytes.Split(manifest, []byte("---\n"))[1:] {
		var head object
		if err := yaml.Unmarshal(text, &head); err != nil {
			t.Fatal(err)
		}
		id := head.Kind + " " + head.Metadata.Namespace + "/" + head.Metadata.Name
		if seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
		if err := yaml.UnmarshalStrict(text, types[head.Kind]()); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if len(seen) != 13 {
		t.Errorf("%d objects", len(seen))
	}
}

// An identity that joins may ask for a kubelet's certificate, and nothing else.
func TestJoining(t *testing.T) {
	const id = "0a000000-0000-0000-0000-000000000001"
	if want := "system:node-bootstrapper system:certificates.k8s.io:certificatesigningrequests:nodeclient"; bound(t, id, false) != want {
		t.Errorf("%q", bound(t, id, false))
	}
	if want := "system:node"; bound(t, id, true) != want {
		t.Errorf("%q", bound(t, id, true))
	}
	for _, bad := range []string{"", "x", "system:masters", strings.ToUpper(id)} {
		if _, err := Joining([]string{bad}, false); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// bound are the roles that an identity is given.
func bound(t *testing.T, id string, direct bool) string {
	t.Helper()
	got, err := Joining([]string{id, id}, direct)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, text := range bytes.Split(got, []byte("---\n"))[1:] {
		var b roles.ClusterRoleBinding
		if err := yaml.UnmarshalStrict(text, &b); err != nil {
			t.Fatal(err)
		}
		if len(b.Subjects) != 1 || b.Subjects[0] != (roles.Subject{Kind: "User", APIGroup: roles.GroupName, Name: id}) {
			t.Errorf("%+v", b.Subjects)
		}
		seen = append(seen, b.RoleRef.Name)
	}
	return strings.Join(seen, " ")
}

// No right to write is given before the policy that limits it.
func TestPoliciesComeFirst(t *testing.T) {
	got, err := Manifest(Options{Secrets: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	text := string(got)
	if strings.LastIndex(text, "kind: ValidatingAdmissionPolicyBinding\n") > strings.Index(text, "kind: ClusterRole\n") {
		t.Error(text)
	}
}

func TestBadOptions(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		says string
	}{
		"no Secret":           {Options{}, "secret: Required"},
		"a Secret's path":     {Options{Secrets: []string{"kube-system/a"}}, "secret: Invalid"},
		"an empty Secret":     {Options{Secrets: []string{""}}, "secret: Invalid"},
		"all Secrets":         {Options{Secrets: []string{"*"}}, "secret: Invalid"},
		"an odd token Secret": {Options{Secrets: []string{"a"}, Others: []string{"A"}}, "token-secret: Invalid"},
		"an odd name":         {Options{Secrets: []string{"a"}, Name: "a:b"}, "name: Invalid"},
		"a group with quotes": {Options{Secrets: []string{"a"}, Group: "x' in ['x"}, "group: Invalid"},
		"everybody":           {Options{Secrets: []string{"a"}, Group: "system:authenticated"}, "group: Invalid"},
		"the tokens' group":   {Options{Secrets: []string{"a"}, Group: "x", BootstrapGroup: "x"}, "group: Invalid"},
		"an odd token group":  {Options{Secrets: []string{"a"}, BootstrapGroup: "a b"}, "bootstrap-group: Invalid"},
	} {
		if out, err := Manifest(c.o); err == nil || !strings.Contains(err.Error(), c.says) || out != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
