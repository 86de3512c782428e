package nodeinit

import (
	"bytes"
	"encoding/pem"

	"github.com/berth-dev/berth/internal/paths"
)

const (
	credentials = Dir + "/credentials"
	options     = paths.SettingsDir + "/agent.yaml"
)

// file is a file for root alone.
type file struct {
	path, content string
}

func (d Data) files() []file {
	all := []file{
		{Dir + "/cluster-ca.crt", plainPEM(d.ClusterCA)},
		{credentials + "/bootstrap-token", d.BootstrapToken},
		{Dir + "/machine-name", d.MachineName},
		{Dir + "/config-" + d.Version + ".yaml", string(d.Configuration)},
	}
	if len(d.Options) > 0 {
		all = append(all, file{options, string(d.Options)})
	}
	return all
}

// plainPEM leaves out what stands between the blocks: user data is short of room.
func plainPEM(text []byte) string {
	var out bytes.Buffer
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return out.String()
		}
		out.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
		text = rest
	}
}
