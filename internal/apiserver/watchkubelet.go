package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/berth-dev/berth/internal/host"
)

// KubeletHealth asks kubelet's health endpoint once; nil is healthy.
func KubeletHealth(ctx context.Context, endpoint string) error {
	return kubeletHealth(ctx, &http.Transport{DisableKeepAlives: true}, endpoint)
}

// KubeletPulse is KubeletHealth for one who asks now and then: it keeps the connection.
func KubeletPulse() func(ctx context.Context, endpoint string) error {
	kept := &http.Transport{MaxIdleConns: 1}
	return func(ctx context.Context, endpoint string) error { return kubeletHealth(ctx, kept, endpoint) }
}

func kubeletHealth(ctx context.Context, t *http.Transport, endpoint string) error {
	if err := askHealth(ctx, &http.Client{Transport: t, Timeout: 2 * tryTimeout}, endpoint); err != nil {
		return fmt.Errorf("ask %s: %w", endpoint, err)
	}
	return nil
}

// watchHealth asks kubelet's health endpoint until it says ok: at once, then
// every 20 to 200 ms. There is nothing to wait on but the clock.
func (w *nodeWait) watchHealth(ctx context.Context) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: tryTimeout}
	next := Intervals(20*time.Millisecond, 200*time.Millisecond)
	for {
		err := askHealth(ctx, client, w.Healthz)
		if ctx.Err() != nil {
			return
		}
		w.see(func() { w.health, w.healthy = err, err == nil })
		if err == nil || !Pause(ctx, next.NextBackOff()) {
			return
		}
	}
}

func askHealth(ctx context.Context, client *http.Client, endpoint string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", resp.StatusCode, strings.TrimSpace(string(text)))
	}
	return nil
}

const (
	// Between two looks at the unit, before and after it has become active.
	startingPause = 50 * time.Millisecond
	activePause   = 250 * time.Millisecond
	// failedFor is how long a unit must stay failed to be lost: a start that
	// waits for another unit finds it failed from before.
	failedFor = 3 * time.Second
	// crashes is how many restarts during the wait make a crash loop.
	crashes = 5
)

// watchUnit follows kubelet's unit for as long as the wait lasts. Where there is
// no systemd from the beginning, there is nothing to follow; one that executes
// itself anew is only away.
func (w *nodeWait) watchUnit(ctx context.Context) {
	rule := crashRule{}
	for first := true; ; first = false {
		u, err := w.Host.Unit(ctx, w.Unit)
		if ctx.Err() != nil {
			return
		}
		w.see(func() {
			w.unit, w.unitErr, w.asked = u, err, true
			if err == nil {
				w.lost = rule.disposition(u, time.Now())
			}
		})
		wait := startingPause
		if u.ActiveState == "active" {
			wait = activePause
		}
		if first && errors.Is(err, host.ErrNoSystemd) || !Pause(ctx, wait) {
			return
		}
	}
}

// crashRule tells a unit that is on its way from one that is lost.
type crashRule struct {
	begun       bool
	restarts    uint32
	failedSince time.Time
}

func (j *crashRule) disposition(u host.UnitStatus, now time.Time) Reason {
	if u.LoadState != "loaded" && u.LoadState != "" {
		return ReasonKubeletMissing
	}
	if !j.begun {
		j.begun, j.restarts = true, u.NRestarts
	}
	if u.ActiveState != "failed" {
		j.failedSince = time.Time{}
	} else if j.failedSince.IsZero() {
		j.failedSince = now
	}
	looping := u.NRestarts >= j.restarts+crashes
	failed := !j.failedSince.IsZero() && now.Sub(j.failedSince) >= failedFor
	if looping || failed {
		return ReasonKubeletCrash
	}
	return ""
}
