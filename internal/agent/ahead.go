package agent

import (
	"context"
	"path"
	"slices"
	"sync"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/token"
	"github.com/berth-dev/berth/internal/desired"
)

// tokensAhead puts the tokens in place that a configuration in a document asks for: units of
// the document may start with them, and this agent takes its configuration after they have.
// What does not come in time, those units have to wait for as for any other.
func (a *Agent) tokensAhead(ctx context.Context, st *desired.State) {
	client, files := a.node.client.Load(), a.newTokens(st)
	if client == nil || len(files) == 0 {
		return
	}
	s := a.tokens(client)
	s.Files = files
	var begun sync.WaitGroup
	begun.Add(len(files))
	s.Begun = begun.Done
	ctx, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Run(ctx) }()
	awaitAll(ctx, &begun, tokensFirst)
	end()
	<-ended
}

// newTokens are the token files that configurations in a document ask for, and this agent's
// does not.
func (a *Agent) newTokens(st *desired.State) (out []token.File) {
	have := a.config.Controllers.Token.SyncConfigs
	for _, r := range st.Resources {
		f, ok := r.(*desired.File)
		if !ok || path.Dir(f.Path) != a.ConfigDir || !config.IsFile(path.Base(f.Path)) {
			continue
		}
		c, _, err := config.Parse(f.Path, f.Content.Data())
		if err != nil {
			continue // it is told when it is in place
		}
		for _, s := range c.Controllers.Token.SyncConfigs {
			if !slices.Contains(have, s) {
				out = append(out, token.File{Secret: s.SecretName, Path: s.Path})
			}
		}
	}
	return out
}
