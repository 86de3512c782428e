package azure

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
)

func TestCLIToken(t *testing.T) {
	m := machine()
	token := jwt(good(m.Now(), time.Hour))
	answer := host.Output{Stdout: fmt.Appendf(nil, `{"accessToken":%q}`, token)}
	var asked host.Command
	m.Program("/usr/bin/az", func(c host.Command) host.Output { asked = c; return answer })
	t.Setenv("HOME", "/home/me")
	source, a := New(m), &desired.AzureIdentity{Kind: desired.AzureCLI, TenantID: tenant, ServerID: azureidentity.AKS}
	got, err := source.ForServer(context.Background(), a)
	if err != nil || got.Text.Reveal() != token {
		t.Fatalf("%+v, %v", got, err)
	}
	if line := strings.Join(asked.Args, " "); line != "account get-access-token --output json --resource "+azureidentity.AKS+" --tenant "+tenant || !strings.Contains(strings.Join(asked.Env, " "), "HOME=/home/me") {
		t.Errorf("%s %q", line, asked.Env)
	}
	nowhere := machine()
	if _, err := New(nowhere).ForServer(context.Background(), a); err == nil || !strings.Contains(hintOf(err), "Install the Azure CLI") {
		t.Errorf("%v; %s", err, hintOf(err))
	}
	for want, out := range map[string]host.Output{
		"az ended with exit code 1: ERROR: Please run 'az login'": {ExitCode: 1, Stderr: []byte("ERROR: Please run 'az login' to setup account.\nmore")},
		"can't be read":  {Stdout: []byte("x")},
		"holds no token": {Stdout: []byte("{}")},
	} {
		answer = out
		if _, err := source.ForServer(context.Background(), a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzCLIAnswer(f *testing.F) {
	f.Add([]byte(`{"accessToken":"x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if token, err := cliAnswer(text); err == nil && token == "" {
			t.Error("nothing and no error")
		}
	})
}
