package nodeconfigutils

import (
	"encoding/base64"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

const ignitionVersion = "3.3.0"

type ignitionConfig struct {
	Ignition struct {
		Version string `json:"version"`
	} `json:"ignition"`
	Storage struct {
		Files []ignitionFile `json:"files"`
		Links []ignitionLink `json:"links"`
	} `json:"storage"`
	Systemd struct {
		Units []ignitionUnit `json:"units"`
	} `json:"systemd"`
}

type ignitionFile struct {
	Path      string         `json:"path"`
	Overwrite bool           `json:"overwrite"`
	Mode      int            `json:"mode"`
	Contents  ignitionSource `json:"contents"`
}

type ignitionSource struct {
	Source string `json:"source"`
}

type ignitionLink struct {
	Path      string `json:"path"`
	Overwrite bool   `json:"overwrite"`
	Target    string `json:"target"`
}

type ignitionUnit struct {
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
}

// CustomDataFlatcar is for machines with Ignition: base64 of an Ignition 3.3.0 document that writes the
// configuration, mode 0600, and has the image's unit started at boot. It does not validate.
func CustomDataFlatcar(cfg *aksnodeconfigv1.Configuration) (string, error) {
	config, err := Marshal(cfg)
	if err != nil {
		return "", err
	}
	document, err := marshalPlain("", ignition(config))
	if err != nil {
		return "", err
	}
	return encode(document)
}

// ignition starts the unit twice over. Enabling it leaves a preset, which systemd reads on a machine's first
// boot only and which hangs the unit on cloud-init.target, that these systems do not have. The link in
// multi-user.target.wants counts on every boot; of its target systemd reads the name only, so it
// holds wherever the image keeps the unit.
func ignition(config []byte) ignitionConfig {
	var c ignitionConfig
	c.Ignition.Version = ignitionVersion
	c.Storage.Files = []ignitionFile{{
		Path: ConfigPath, Overwrite: true, Mode: 0o600,
		Contents: ignitionSource{"data:;base64," + base64.StdEncoding.EncodeToString(config)},
	}}
	c.Storage.Links = []ignitionLink{{
		Path:      "/etc/systemd/system/multi-user.target.wants/" + Unit,
		Overwrite: true,
		Target:    "/etc/systemd/system/" + Unit,
	}}
	c.Systemd.Units = []ignitionUnit{{Name: Unit, Enabled: true}}
	return c
}
