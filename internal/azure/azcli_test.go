package azure

import (
	"context"
	"fmt"
	"slices"
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
		"exit code 2: ERROR: AADSTS50076: x":                      {ExitCode: 2, Stderr: []byte("WARNING: a new version is there\n\nERROR: AADSTS50076: x\r\nTo sign in\n")},
		"exit code 3: ValueError: the last one":                   {ExitCode: 3, Stderr: []byte("Traceback:\n  File x\nValueError: the last one\n\n")},
		"exit code 4":                                             {ExitCode: 4},
		"can't be read":                                           {Stdout: []byte("x")},
		"holds no token":                                          {Stdout: []byte("{}")},
	} {
		answer = out
		if _, err := source.ForServer(context.Background(), a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The program goes by the document's way out, and where that says nothing by the
// environment's.
func TestCLIWay(t *testing.T) {
	m := machine()
	var asked []string
	m.Program("/usr/bin/az", func(c host.Command) host.Output {
		asked = c.Env
		return host.Output{Stdout: fmt.Appendf(nil, `{"accessToken":%q}`, jwt(good(m.Now(), time.Hour)))}
	})
	a := &desired.AzureIdentity{Kind: desired.AzureCLI, TenantID: tenant, ServerID: azureidentity.AKS}
	t.Setenv("REQUESTS_CA_BUNDLE", "/etc/bundle.pem")
	t.Setenv("HTTPS_PROXY", "http://environment:1")
	t.Setenv("https_proxy", "")
	for via, want := range map[*desired.Egress][]string{
		nil: {"REQUESTS_CA_BUNDLE=/etc/bundle.pem", "HTTPS_PROXY=http://environment:1"},
		{HTTPProxy: "http://p:1", HTTPSProxy: "http://s:2", NoProxy: []string{"a", "b"}}: {"REQUESTS_CA_BUNDLE=/etc/bundle.pem", "HTTP_PROXY=http://p:1", "http_proxy=http://p:1",
			"HTTPS_PROXY=http://s:2", "https_proxy=http://s:2", "NO_PROXY=a,b", "no_proxy=a,b"},
	} {
		if _, err := New(m).Bootstrap(context.Background(), a, via); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !slices.Contains(asked, w) {
				t.Errorf("%q is not among %q", w, asked)
			}
		}
		if via != nil && slices.Contains(asked, "HTTPS_PROXY=http://environment:1") {
			t.Errorf("%q", asked)
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
