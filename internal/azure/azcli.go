package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/host"
)

const cliProgram = "az"

// cliToken asks the Azure CLI for a token of whoever has logged in with it. The
// token comes by the program's output.
func (s *Source) cliToken(ctx context.Context, resource, tenant string) (string, error) {
	const during = "ask the Azure CLI for a token"
	const remedy = "Log in as the user who runs berth (az login), or choose another identity."
	args := []string{"account", "get-access-token", "--output", "json", "--resource", resource}
	if tenant != "" {
		args = append(args, "--tenant", tenant)
	}
	out, err := s.host.Run(ctx, host.Command{Path: cliProgram, Args: args, Env: s.cliEnvironment()})
	if errors.Is(err, fs.ErrNotExist) {
		return "", failed(during, "Install the Azure CLI (az), or choose another identity.", err)
	}
	if err != nil {
		if e, ok := errors.AsType[*host.ExitError](err); ok {
			err = fmt.Errorf("az ended with exit code %d: %s", e.Output.ExitCode, errorLine(string(e.Output.Stderr)))
		}
		return "", failed(during, remedy, err)
	}
	token, err := cliAnswer(out.Stdout)
	if err != nil {
		return "", failed(during, remedy, err)
	}
	return token, nil
}

// cliEnvironment is what az needs of the environment, and the document's proxies. What
// the document trusts az does not know of: it takes one file with all CAs.
func (s *Source) cliEnvironment() []string {
	values := map[string]string{"AZURE_CORE_NO_COLOR": "true"}
	for _, name := range []string{"HOME", "AZURE_CONFIG_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"} {
		values[name] = os.Getenv(name)
	}
	if via := s.via; via != nil && (via.HTTPProxy != "" || via.HTTPSProxy != "") {
		for name, v := range map[string]string{"HTTP_PROXY": via.HTTPProxy.Reveal(), "HTTPS_PROXY": via.HTTPSProxy.Reveal(), "NO_PROXY": strings.Join(via.NoProxy, ",")} {
			values[name], values[strings.ToLower(name)] = v, v
		}
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != "" {
			env = append(env, name+"="+values[name])
		}
	}
	return env
}

// errorLine is the first line that az marks as an error, else the last one.
func errorLine(text string) string {
	last := ""
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, "ERROR") {
			return line(l)
		}
		if strings.TrimSpace(l) != "" {
			last = l
		}
	}
	return line(last)
}

// cliAnswer is the token in what az prints.
func cliAnswer(text []byte) (string, error) {
	var said struct {
		Token string `json:"accessToken"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return "", errors.New("what az prints can't be read")
	}
	if said.Token == "" {
		return "", errors.New("what az prints holds no token")
	}
	return said.Token, nil
}
