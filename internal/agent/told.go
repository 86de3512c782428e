package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
	"github.com/berth-dev/berth/internal/paths"
)

// Copies of what the agent took last: it begins with them where what it is told is
// refused.
const (
	keptConfig  = paths.StateDir + "/agent-config.yaml"
	keptOptions = paths.StateDir + "/agent-options.yaml"
)

// orders are what the agent goes by.
type orders struct {
	// file is the configuration's; where there is none, where it should be.
	file    string
	config  *config.NodeAgent
	notes   []string
	options *config.Options

	configText, optionsText []byte
}

// read reads what the agent is told now.
func (o *orders) read(s *Settings) error {
	file, err := config.Find(s.Host, s.ConfigDir, s.Version)
	if err != nil {
		o.file = path.Join(s.ConfigDir, "config-"+s.Version+".yaml")
		return err
	}
	o.file = file
	if o.configText, err = s.Host.ReadFile(file); err != nil {
		return fmt.Errorf("read the agent's configuration: %w", err)
	}
	if o.config, o.notes, err = config.Parse(file, o.configText); err != nil {
		return err
	}
	if err := o.config.UseKubeconfig(s.Kubeconfig); err != nil {
		return err
	}
	if o.optionsText, err = s.Host.ReadFile(config.OptionsPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the agent's options: %w", err)
	}
	o.options, err = config.ParseOptions(config.OptionsPath, o.optionsText)
	return err
}

// readKept reads the copies.
func (o *orders) readKept(s *Settings) (err error) {
	h := s.Host
	if o.config, o.notes, err = config.Read(h, keptConfig); err != nil {
		return err
	}
	if err := o.config.UseKubeconfig(s.Kubeconfig); err != nil {
		return err
	}
	text, err := h.ReadFile(keptOptions)
	if err != nil {
		return fmt.Errorf("read the agent's options: %w", err)
	}
	o.options, err = config.ParseOptions(keptOptions, text)
	return err
}

// keep writes the copies.
func (o *orders) keep(h host.FS) error {
	err := host.PrivateDir(h, paths.StateDir)
	for p, text := range map[string][]byte{keptConfig: o.configText, keptOptions: o.optionsText} {
		if have, missing := h.ReadFile(p); missing == nil && bytes.Equal(have, text) {
			continue
		}
		if err == nil {
			err = host.WriteFile(h, p, text, host.Attributes{Mode: 0o600})
		}
	}
	if err != nil {
		return fmt.Errorf("keep what the agent is told: %w", err)
	}
	return nil
}

// takes says whether the agent can go by what it is told now, and tells if not.
func (a *Agent) takes() bool {
	err := a.usable()
	if err != nil && a.refuse(err) {
		a.lookAgain() // a file that is gone may be one of the document
	}
	return err == nil
}

// usable is why the agent could not go by what it is told now. A CA at another path
// is not checked: it may come later.
func (a *Agent) usable() error {
	var now orders
	if err := now.read(&a.Settings); err != nil {
		return err
	}
	if p := now.config.ClientConnection.Kubeconfig; p != "" {
		if _, err := kubeconfig.Read(a.Host, p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if now.config.APIServer.CAFile != a.config.APIServer.CAFile {
		return nil
	}
	ca, err := a.Host.ReadFile(a.config.APIServer.CAFile)
	if err != nil {
		return fmt.Errorf("read the cluster's CA: %w", err)
	}
	client, err := apiserver.NewClient(apiserver.Access{Server: now.config.APIServer.Server, CA: ca})
	if err != nil {
		return fmt.Errorf("%s: %w", a.config.APIServer.CAFile, err)
	}
	client.Close()
	return nil
}

// refuse tells once that the agent does not go by what it is told, and says whether it
// did so now.
func (a *Agent) refuse(err error) bool {
	code, cause, remedy := a.Explain(&exitcode.Error{Err: err,
		Remedy: "Correct the file or put it back: the agent takes it then; until then it goes by what it had."})
	text := code + ": " + cause + " — " + remedy
	if a.refused == text {
		return false
	}
	a.refused = text
	a.Log.Error("what the agent is told is refused", "code", code, "error", cause, "hint", remedy)
	a.events.Warning("ConfigRefused", text)
	return true
}

// beside are the files that count beside the configuration.
func (a *Agent) beside() []string {
	out := []string{a.config.APIServer.CAFile, config.OptionsPath}
	if p := a.config.ClientConnection.Kubeconfig; p != "" {
		out = append(out, p)
	}
	return out
}

// told is all that the agent is told, as it is now: which file counts, and what is in
// each.
func (a *Agent) told() []byte {
	file, _ := config.Find(a.Host, a.ConfigDir, a.Version) // none is a change, too
	all := [][]byte{[]byte(file)}
	for _, p := range append(a.beside(), file) {
		text, _ := a.Host.ReadFile(p)
		all = append(all, text)
	}
	return bytes.Join(all, []byte{0})
}
