package identity

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/paths"
)

const pendingDir = paths.StateDir + "/identity"

// pending keeps the key of a request that a person has yet to approve: without
// it, the approval would be for a key that no longer exists. It costs work when
// lost, therefore its errors end nothing.
type pending struct {
	h    host.FS
	path string
}

// pendingPath is where the key for a node of a cluster waits: another node name,
// server or CA is another request.
func pendingPath(c *desired.ClientCertificate) string {
	return pendingName("client-", c.NodeName, c.Server, c.CA)
}

func pendingName(prefix, who, server, ca string) string {
	sum := sha256.Sum256([]byte(who + "\x00" + server + "\x00" + ca))
	return path.Join(pendingDir, prefix+hex.EncodeToString(sum[:6])+".key")
}

// load returns the kept key, or nil.
func (p pending) load() *ecdsa.PrivateKey {
	text, err := p.h.ReadFile(p.path)
	if err != nil {
		return nil
	}
	key, err := decodeKey(text)
	if err != nil {
		return nil
	}
	return key
}

func (p pending) save(key *ecdsa.PrivateKey) {
	text, err := encodeKey(key)
	if err != nil {
		return
	}
	for _, dir := range []string{paths.StateDir, pendingDir} {
		if err := p.h.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return
		}
	}
	_ = host.WriteFile(p.h, p.path, text, host.Attributes{Mode: 0o600})
}

func (p pending) drop() {
	if _, err := p.h.Lstat(p.path); err != nil {
		return
	}
	if p.h.Remove(p.path) == nil {
		_ = p.h.SyncDir(path.Dir(p.path))
	}
}
