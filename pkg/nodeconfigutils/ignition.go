package nodeconfigutils

import (
	"encoding/base64"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/ignition"
)

// CustomDataFlatcar is for machines with Ignition: base64 of an Ignition 3.3.0 document that writes the
// configuration, mode 0600, and has the image's unit started at boot. It does not validate.
func CustomDataFlatcar(cfg *aksnodeconfigv1.Configuration) (string, error) {
	config, err := Marshal(cfg)
	if err != nil {
		return "", err
	}
	c := ignition.New()
	c.Write(ConfigPath, "data:;base64,"+base64.StdEncoding.EncodeToString(config))
	c.Start(Unit, "") // enabled alone, it hangs on cloud-init.target, which these systems do not have
	document, err := marshalPlain("", c)
	if err != nil {
		return "", err
	}
	return encode(document)
}
