// Package azureidentity is the file that tells `berth token` who the machine is to
// Microsoft Entra ID.
package azureidentity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/paths"
)

// Path is where the file is.
const Path = paths.SettingsDir + "/azure-identity.json"

// Program is what prints tokens where nothing says where berth itself is.
const Program = "/usr/local/bin/berth"

// AKS is the application of every AKS API server, in all clouds.
const AKS = "6dae42f8-4368-4678-94ff-3960e28e3630"

// Authority is where applications of the public cloud have their tokens from.
const Authority = "https://login.microsoftonline.com"

// file is an identity with its secret, which prints nowhere else.
type file struct {
	desired.AzureIdentity
	ClientSecret string `json:"clientSecret,omitempty"`
}

// Marshal is the text of the file.
func Marshal(a desired.AzureIdentity) ([]byte, error) {
	f := file{AzureIdentity: a, ClientSecret: a.ClientSecret.Reveal()}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write identity: %w", err)
	}
	return append(b, '\n'), nil
}

// Parse reads the text of the file: nothing in it is unknown, or left over.
func Parse(text []byte) (desired.AzureIdentity, error) {
	var f file
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return desired.AzureIdentity{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return desired.AzureIdentity{}, errors.New("there is text after the identity")
	}
	f.AzureIdentity.ClientSecret = desired.Secret(f.ClientSecret)
	return f.AzureIdentity, f.Validate()
}

// Lasting says whether an identity is there after the join: the login of a person and
// a variable of berth's environment are not.
func Lasting(a *desired.AzureIdentity) bool {
	return a.Kind != desired.AzureCLI && a.ClientSecretEnv == ""
}
