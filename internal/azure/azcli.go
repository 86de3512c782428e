package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

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
	env := []string{"AZURE_CORE_NO_COLOR=true"}
	for _, name := range []string{"HOME", "AZURE_CONFIG_DIR", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	out, err := s.host.Run(ctx, host.Command{Path: cliProgram, Args: args, Env: env})
	if errors.Is(err, fs.ErrNotExist) {
		return "", failed(during, "Install the Azure CLI (az), or choose another identity.", err)
	}
	if err != nil {
		if e, ok := errors.AsType[*host.ExitError](err); ok {
			err = fmt.Errorf("az ended with exit code %d: %s", e.Output.ExitCode, line(string(e.Output.Stderr)))
		}
		return "", failed(during, remedy, err)
	}
	token, err := cliAnswer(out.Stdout)
	if err != nil {
		return "", failed(during, remedy, err)
	}
	return token, nil
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
