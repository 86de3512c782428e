package nodeconfigutils

import (
	"encoding/base64"
	"strings"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// cloud-init runs a boothook on every boot. This one writes the configuration on the first boot of an
// instance only: where there is none, or where the one that is there came with another instance
// (a captured image). The file is whole or absent: written and synced under another name, then renamed.
const (
	boothookHead = `#cloud-boothook
#!/bin/sh
set -eu; umask 077; config=` + ConfigPath + `
id=${INSTANCE_ID:-$(cat /var/lib/cloud/data/instance-id)}
[ -s "$config" ] && [ "$(cat "$config.instance-id" 2>/dev/null)" = "$id" ] || {
(umask 022; mkdir -p "${config%/*}")
base64 -d >"$config.new" <<'EOF'
`
	boothookTail = `EOF
sync "$config.new"; mv -f "$config.new" "$config"; printf '%s\n' "$id" >"$config.instance-id"; }
systemctl start --no-block ` + Unit + `
`
)

func boothook(cfg *aksnodeconfigv1.Configuration) ([]byte, error) {
	config, err := Marshal(cfg)
	if err != nil {
		return nil, err
	}
	return []byte(boothookHead + wrapped(config) + boothookTail), nil
}

// mimeLine is the longest line of base64 in a mail (RFC 2045); 7bit content may not have lines over 998.
const mimeLine = 76

func wrapped(data []byte) string {
	text := base64.StdEncoding.EncodeToString(data)
	var out strings.Builder
	for len(text) > 0 {
		n := min(len(text), mimeLine)
		out.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	return out.String()
}
