package nodeconfigutils

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// cloudConfig is the part of cloud-init's #cloud-config that is written here. JSON is YAML.
type cloudConfig struct {
	BootCmd    [][]string  `json:"bootcmd,omitempty"`
	WriteFiles []writeFile `json:"write_files,omitempty"`
	RunCmd     [][]string  `json:"runcmd,omitempty"`
}

type writeFile struct {
	Path        string `json:"path"`
	Owner       string `json:"owner"`
	Permissions string `json:"permissions"`
	Encoding    string `json:"encoding"`
	Content     string `json:"content"`
}

// createPrivate makes the file before write_files does: that opens it first and sets its mode after.
const createPrivate = `umask 022; mkdir -p /opt/azure/containers; umask 077; [ -e ` + ConfigPath + ` ] || : >` + ConfigPath + `; chmod 0600 ` + ConfigPath

// CloudConfig is a #cloud-config document that writes the configuration and starts provisioning, for clients
// with a cloud-config of their own. It is the document itself, not base64. It does not validate.
//
// cloud-init writes the file in place, so CustomData is to be preferred: there it is whole or absent.
func CloudConfig(cfg *aksnodeconfigv1.Configuration) (string, error) {
	config, err := Marshal(cfg)
	if err != nil {
		return "", err
	}
	document, err := cloudConfig{
		BootCmd: [][]string{{"sh", "-c", createPrivate}},
		WriteFiles: []writeFile{{
			Path: ConfigPath, Owner: "root:root", Permissions: "0600",
			Encoding: "b64", Content: base64.StdEncoding.EncodeToString(config),
		}},
		RunCmd: startCommand(),
	}.marshal()
	if err != nil {
		return "", err
	}
	if _, err := encode(document); err != nil {
		return "", err
	}
	return string(document), nil
}

func startCommand() [][]string {
	return [][]string{{"systemctl", "start", "--no-block", Unit}}
}

func (c cloudConfig) marshal() ([]byte, error) {
	return marshalPlain("#cloud-config\n", c)
}

// marshalPlain leaves <, > and & alone: nobody puts these documents into HTML.
func marshalPlain(head string, v any) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(head)
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return out.Bytes(), err
}
