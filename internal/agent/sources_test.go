package agent

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/agent/reconcile"
	"github.com/berth-dev/berth/internal/host/memory"
)

// TestSources: each source has an opener of its own, and no other.
func TestSources(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                 {"[osc node] "},
		"sources: {aksNodeConfig: /aks}\n": {"[osc node] ", "[aks] /aks"},
		"sources: {nodeConfig: /node}\n":   {"[osc] ", "[node] /node"},
		"sources: {secret: false, operatingSystemConfig: /osc, aksNodeConfig: /aks}\n": {"[osc] /osc", "[aks] /aks"},
	} {
		h := machineWith(configText)
		h.Put(config.OptionsPath, text, 0o600)
		s, got := settingsOf(h), []string(nil)
		s.Open = func(src Source, _ SecretReader, _ bool) reconcile.Opener {
			got = append(got, fmt.Sprintf("%v %s", src.Owners, src.File))
			return nil
		}
		a, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" || len(a.reconcilers()) != len(want) {
			t.Errorf("%q: %s", text, d)
		}
	}
}

// written is a file that somebody goes on writing while the agent waits.
type written struct {
	*memory.Host
	more []string
}

// Sleep implements host.Clock.
func (w *written) Sleep(ctx context.Context, d time.Duration) error {
	if err := w.Host.Sleep(ctx, d); err != nil || len(w.more) == 0 {
		return err
	}
	w.Overwrite("/d/x", w.more[0])
	w.more = w.more[1:]
	return nil
}

// TestReadSettled: a document is read when nobody writes it any more.
func TestReadSettled(t *testing.T) {
	h := machineWith(configText)
	h.PutDir("/d")
	a := begin(t, h)
	if _, err := a.readSettled(t.Context(), "/d/x"); err == nil {
		t.Error("nothing is read")
	}
	h.Put("/d/x", "half", 0o600)
	w := &written{h, []string{"more", "whole"}}
	a.Host = w
	if got, err := a.readSettled(t.Context(), "/d/x"); err != nil || string(got) != "whole" || len(w.more) > 0 {
		t.Errorf("%q, %v", got, err)
	}
}

// TestFollowFile: a document is taken when it comes and when it changes; that there is
// none is told, and takes nothing away.
func TestFollowFile(t *testing.T) {
	h := machineWith(configText)
	h.PutDir("/d")
	a := begin(t, h)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		told := said(t, a, func() {
			go a.followFile(ctx, "/d/x", func(d *reconcile.Document) { got = append(got, string(d.Text)) })
			synctest.Wait()
			h.Put("/d/x", "first", 0o600)
			synctest.Wait()
			h.Overwrite("/d/x", "second")
			synctest.Wait()
			if err := h.Remove("/d/x"); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		})
		if got = slices.Compact(got); !slices.Equal(got, []string{"first", "second"}) {
			t.Errorf("taken: %q", got)
		}
		if len(told) == 0 {
			t.Error("that there is none is not told")
		}
	})
}

// TestFilesWaitForTokens: a document of a file comes after the tokens that its units may start
// with. It does not wait where they are there from before, and not for ever.
func TestFilesWaitForTokens(t *testing.T) {
	const tokenFile = "/var/lib/s/token"
	for name, c := range map[string]struct {
		arrange func(*memory.Host, *Agent)
		waits   time.Duration
	}{
		"none are asked for": {func(_ *memory.Host, a *Agent) { a.config.Controllers.Token.SyncConfigs = nil }, 0},
		"from before":        {func(h *memory.Host, _ *Agent) { h.Put(tokenFile, "t", 0o600) }, 0},
		"synced":             {func(_ *memory.Host, a *Agent) { time.AfterFunc(time.Second, func() { close(a.tokensThere) }) }, time.Second},
		"no API server":      {func(*memory.Host, *Agent) {}, tokensFirst},
	} {
		t.Run(name, func(t *testing.T) {
			h := machineWith(configText + "  token: {syncConfigs: [{secretName: s, path: " + tokenFile + "}]}\n")
			h.Put(config.OptionsPath, "sources: {secret: false, operatingSystemConfig: /d/x}\n", 0o600)
			h.Put("/d/x", "a document", 0o600)
			a := begin(t, h)
			synctest.Test(t, func(t *testing.T) {
				a.tokensThere = make(chan struct{}) // of this test's time
				c.arrange(h, a)
				began := time.Now()
				a.awaitTokens(t.Context())
				if waited := time.Since(began); waited != c.waits {
					t.Errorf("it waited for %s", waited)
				}
			})
		})
	}
}
