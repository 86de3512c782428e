package apiserver

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	clientcmd "k8s.io/client-go/tools/clientcmd/api"
)

// TestPlugin: the token that a credential plugin prints goes with each request, and the
// plugin is asked again where the server does not know it.
func TestPlugin(t *testing.T) {
	known := "Bearer one"
	s, ca := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != known {
			answer(w, http.StatusUnauthorized, statusOf+`Unauthorized"}`)
			return
		}
		answer(w, 200, `{"kind":"PodList","apiVersion":"v1","items":[]}`)
	}))
	dir := t.TempDir()
	program, token := filepath.Join(dir, "plugin"), filepath.Join(dir, "token")
	say := func(text string) {
		t.Helper()
		if err := os.WriteFile(token, []byte(`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"`+text+`"}}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec cat "+token+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	say("one")
	c, err := NewClient(Access{Server: s.URL, CA: []byte(ca), Plugin: &clientcmd.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: program, InteractiveMode: clientcmd.NeverExecInteractiveMode}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.ListPods(t.Context(), "n1"); err != nil {
		t.Error(err)
	}
	known = "Bearer two"
	say("two")
	if _, err := c.ListPods(t.Context(), "n1"); err == nil {
		t.Error("the old token is known still")
	}
	if _, err := c.ListPods(t.Context(), "n1"); err != nil {
		t.Errorf("after the plugin was asked again: %v", err)
	}
	if _, err := NewClient(Access{Server: s.URL, CA: []byte(ca), Plugin: &clientcmd.ExecConfig{APIVersion: "v0", Command: program}}); err == nil {
		t.Error("an unknown version of plugins is taken")
	}
}
