package credential

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// kubelet's files, as published.
const (
	KubeletBootstrap   = "/var/lib/kubelet/kubeconfig-bootstrap"
	KubeletCertificate = "/var/lib/kubelet/pki/kubelet-client-current.pem"
)

// GiveKubelet writes kubelet's first credential, where there is a token and kubelet
// has no certificate.
func (k *Keeper) GiveKubelet() error {
	token, err := k.Host.ReadFile(config.BootstrapToken)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the bootstrap token: %w", err)
	}
	for _, p := range []string{kubelet.AgentKubeconfig, KubeletCertificate} {
		if _, err := k.Host.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	text, err := (&kubeconfig.Config{Server: k.Server, CAFile: k.CAFile, Token: desired.Secret(bytes.TrimSpace(token))}).Text()
	if err != nil {
		return err
	}
	if have, err := k.Host.ReadFile(KubeletBootstrap); err == nil && bytes.Equal(have, text) {
		return nil
	}
	return writePrivate(k.Host, KubeletBootstrap, text)
}

// TakeAway removes the token and what was made of it: agent and kubelet have
// certificates of their own. A token that is needed again stays.
func (k *Keeper) TakeAway() error {
	if k.failing.Load() {
		return nil
	}
	for _, p := range []string{KubeletBootstrap, config.BootstrapToken} {
		err := k.Host.Remove(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = k.Host.SyncDir(path.Dir(p))
		}
		if err != nil {
			return fmt.Errorf("take away %s: %w", p, err)
		}
	}
	return nil
}
