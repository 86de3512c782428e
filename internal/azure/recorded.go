package azure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/berth-dev/berth/internal/component/azureidentity"
	"github.com/berth-dev/berth/internal/component/proxy"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// Recorded reads the file that says who the machine is. instead is how the caller may
// name an identity of its own, for one who may not read the machine's.
func Recorded(h host.FS, file, instead string) (desired.AzureIdentity, error) {
	const during = "read the machine's identity"
	text, err := h.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return desired.AzureIdentity{}, &exitcode.Error{Err: fmt.Errorf("%s: %w", during, err),
			Remedy: "This machine has joined no cluster with an identity of Azure: apply a NodeConfig with one (identity.managedIdentity, arc or servicePrincipal)."}
	case errors.Is(err, fs.ErrPermission):
		return desired.AzureIdentity{}, &exitcode.Error{Err: fmt.Errorf("%s: %w", during, err),
			Remedy: "Run it as root, who alone may read the machine's identity, or name " + instead + "."}
	case err != nil:
		return desired.AzureIdentity{}, fmt.Errorf("%s: %w", during, err)
	}
	a, err := azureidentity.Parse(text)
	if err == nil && a.Kind == desired.AzureCLI {
		err = errors.New("the Azure CLI's login serves for the time of a join alone")
	}
	if err != nil {
		return a, fmt.Errorf("%s: %w", file, err)
	}
	return a, nil
}

// proxyVariables name a proxy to programs.
var proxyVariables = []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"}

// NewRecorded is the source of a machine that asks for a service principal's tokens by
// the proxy of the machine's document, where the environment names none: kubelet has it
// from its unit, and nobody else who calls a credential plugin.
func NewRecorded(h host.Host, a *desired.AzureIdentity) (*Source, error) {
	if a.Kind != desired.AzureServicePrincipal {
		return New(h), nil
	}
	via, err := recordedProxy(h, os.Getenv)
	return New(h).By(via), err
}

// recordedProxy is the way out of the machine's document; nil where there is none, or the
// environment names another.
func recordedProxy(h host.FS, env func(string) string) (*desired.Egress, error) {
	if slices.ContainsFunc(proxyVariables, func(name string) bool { return env(name) != "" }) {
		return nil, nil
	}
	text, err := h.ReadFile(proxy.VariablesFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // it is root's
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the machine's proxy: %w", err)
	}
	via, err := proxy.Read(string(text))
	if err != nil {
		return nil, &exitcode.Error{Err: fmt.Errorf("%s: %w", proxy.VariablesFile, err), Remedy: "Apply the machine's document again: berth join writes the file."}
	}
	return via, nil
}
