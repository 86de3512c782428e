package credential

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/agent/config"
	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/identity"
)

// TestRotateWithACertificateThatServesNoMore: the agent asks for a token, and takes
// one that is put on the machine while it runs.
func TestRotateWithACertificateThatServesNoMore(t *testing.T) {
	for name, away := range map[string]error{
		"expired": errors.New("away"),
		"refused": &identity.Error{Reason: identity.ReasonUnauthorized, Err: errors.New("401")},
	} {
		t.Run(name, func(t *testing.T) {
			h, s, k := machine(t)
			a, err := k.Access(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := k.TakeAway(); err != nil {
				t.Fatal(err)
			}
			s.refuses = away
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			renewed, failures := 0, 0
			k.Rotate(ctx, a, func(apiserver.Access) error { renewed++; cancel(); return nil }, func(err error) {
				if failures++; failures == 50 {
					t.Error("it is never asked for a token")
					cancel()
				}
				if exitcode.Of(err) != exitcode.Credential || !strings.Contains(err.Error(), "no bootstrap token") {
					h.Advance(100 * time.Hour) // the certificate ends meanwhile
					return
				}
				h.Put(config.BootstrapToken, token+"\n", 0o600)
				if err := k.TakeAway(); err != nil {
					t.Fatal(err)
				}
			})
			last := s.asked[len(s.asked)-1]
			if renewed != 1 || last.Token != token || last.Certificate != nil {
				t.Errorf("renewed %d times, last with a certificate: %v", renewed, last.Certificate != nil)
			}
			if err := k.TakeAway(); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Lstat(config.BootstrapToken); err == nil {
				t.Error("the token is left")
			}
		})
	}
}

// TestRotateWithAClockThatWasAhead: a certificate that only seemed to have ended serves
// again when the clock is right. That is told, nothing is asked for, and a bootstrap token
// is taken away as before.
func TestRotateWithAClockThatWasAhead(t *testing.T) {
	h, s, k := machine(t)
	a, err := k.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := k.TakeAway(); err != nil {
		t.Fatal(err)
	}
	const ahead = 40 * 24 * time.Hour
	h.Advance(ahead)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var again []apiserver.Access
	began, asked, failures := h.Now(), len(s.asked), 0
	k.Rotate(ctx, a, func(now apiserver.Access) error {
		again = append(again, now)
		cancel()
		return nil
	}, func(error) {
		if failures++; failures == 2 {
			h.Advance(-ahead)
		}
	})
	if len(again) != 1 || string(again[0].Certificate) != string(a.Certificate) || len(s.asked) != asked || h.Now().Sub(began.Add(-ahead)) > time.Hour {
		t.Errorf("told %d times, asked %d times, %s after", len(again), len(s.asked)-asked, h.Now().Sub(began.Add(-ahead)))
	}
	h.Put(config.BootstrapToken, token+"\n", 0o600)
	if err := k.TakeAway(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Lstat(config.BootstrapToken); err == nil {
		t.Error("the token is left")
	}
}

// A certificate that serves is not given up for a token that lies about.
func TestRotateGoesByTheCertificateWhileItServes(t *testing.T) {
	_, s, k := machine(t)
	a, err := k.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.err = errors.New("away")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k.Rotate(ctx, a, nil, func(error) { cancel() })
	if last := s.asked[len(s.asked)-1]; last.Token != "" || last.Certificate == nil {
		t.Error("asked with the token")
	}
}

// TestRotateWhatIsDoubted: a certificate that the server does not know is no longer
// gone by before its end; with the bootstrap token there is another one, and doubt about
// that does not ask for more.
func TestRotateWhatIsDoubted(t *testing.T) {
	h, s, k := machine(t)
	a, err := k.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := k.TakeAway(); err != nil {
		t.Fatal(err)
	}
	s.refuses = &identity.Error{Reason: identity.ReasonUnauthorized, Err: errors.New("401")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, asked, renewed := h.Now(), len(s.asked), []time.Duration(nil)
	k.Doubt()
	k.Doubt()
	k.Rotate(ctx, a, func(apiserver.Access) error {
		if renewed = append(renewed, h.Now().Sub(began)); len(renewed) == 2 {
			cancel()
		}
		s.refuses = nil
		k.Doubt()
		return nil
	}, func(err error) {
		if exitcode.Of(err) != exitcode.Credential || !strings.Contains(err.Error(), "no bootstrap token") {
			t.Errorf("told: %v", err)
		}
		h.Put(config.BootstrapToken, token+"\n", 0o600)
	})
	if len(renewed) != 2 || renewed[0] > time.Minute || renewed[1] < 500*time.Hour {
		t.Errorf("renewed after %v", renewed)
	}
	if s.asked[asked].Certificate == nil || s.asked[asked+2].Token != token {
		t.Error("not asked with the certificate first, and then with the token")
	}
}

// TestADoubtedFleet: a server that knows nobody any more is not asked by all at once,
// nor by one of them more and more.
func TestADoubtedFleet(t *testing.T) {
	const fleet = 20
	var first []time.Duration
	for n := range fleet {
		h, s, k := machine(t)
		k.Random = float64(n) / fleet
		a, err := k.Access(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := k.TakeAway(); err != nil {
			t.Fatal(err)
		}
		s.refuses = &identity.Error{Reason: identity.ReasonUnauthorized, Err: errors.New("401")}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := h.Now()
		var at []time.Duration
		k.Doubt()
		k.Rotate(ctx, a, nil, func(error) {
			if at = append(at, h.Now().Sub(began)); at[len(at)-1] > 24*time.Hour {
				cancel()
			}
		})
		first = append(first, at[0])
		if len(at) > 200 {
			t.Errorf("it asks %d times in a day", len(at))
		}
		for i := range at[1:] {
			if pause := at[i+1] - at[i]; pause > 13*time.Minute {
				t.Errorf("it rests for %s: a token that comes is found late", pause)
			}
		}
	}
	slices.Sort(first)
	if first[fleet/2]-first[0] < 5*time.Second || first[fleet-1] > 30*time.Second {
		t.Errorf("the fleet asks after %v", first)
	}
}
