package azure

import (
	"context"
	"net/http"
	"testing"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/effect"
)

// mortal is a source that is killed: at an effect on its machine, or before or after a
// request that changes something in Azure.
func (d *distribution) mortal(f effect.Fault) (*Source, *effect.Injector) {
	i := effect.Inject(d.host, effect.Plan{f})
	s := *d.source
	s.host = i
	s.endpoints.outward = func(via *desired.Egress) (*http.Client, error) {
		c, err := outward(via)
		if err == nil {
			c.Transport = &cuttable{d, i, c.Transport}
		}
		return c, err
	}
	return &s, i
}

// cuttable makes a request an effect of the machine, so that faults meet it.
type cuttable struct {
	d    *distribution
	host *effect.Injector
	next http.RoundTripper
}

func (c *cuttable) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	if _, gone := c.host.Lstat("/"); gone != nil {
		return nil, gone
	}
	if req.Method == http.MethodGet || req.Method == http.MethodPost {
		return c.next.RoundTrip(req)
	}
	const program = "/request"
	c.d.host.Program(program, func(host.Command) host.Output {
		resp, err = c.next.RoundTrip(req) //nolint:bodyclose // whoever asked closes it
		return host.Output{}
	})
	if _, cut := c.host.Run(req.Context(), host.Command{Path: program}); cut != nil {
		if resp != nil {
			resp.Body.Close()
		}
		return nil, cut
	}
	return resp, err
}

// everyKill runs what is to be killed at each effect, until none is left.
func everyKill(t *testing.T, run func(t *testing.T, f effect.Fault) (hit bool)) {
	t.Helper()
	for _, kind := range []effect.Kind{effect.StopBefore, effect.StopAfter} {
		n := 1
		for run(t, effect.Fault{At: n, Kind: kind}) {
			n++
		}
		if n < 20 || t.Failed() {
			t.Fatalf("kind %d: there were %d effects", kind, n-1)
		}
	}
}

// clean says whether nothing is in Azure, and nothing of the agent on the machine.
func (d *distribution) clean(t *testing.T, f effect.Fault, at *effect.Effect) {
	t.Helper()
	if len(d.objects) > 0 || d.local || d.state != "" || d.has(MadePath) || d.has(arcInputs) || d.has("/usr/bin/azcmagent") {
		t.Errorf("%+v at %v: %v, connected %t, package %q, file %t", f, at, d.objects, d.local, d.state, d.has(MadePath))
	}
}

// A join that is killed anywhere between its first note and Azure's last answer is
// continued by the next, with one machine and one role in Azure.
func TestRegisterKilledAnywhere(t *testing.T) {
	everyKill(t, func(t *testing.T, f effect.Fault) bool {
		d := newDistribution(t, debHead)
		s, i := d.mortal(f)
		err := s.Register(context.Background(), d.r, false, d.packageOn(i), func(string) {})
		if i.Hit() == nil {
			return false
		}
		if err == nil && f.Kind == effect.StopBefore {
			t.Errorf("%+v at %v: nobody noticed", f, i.Hit())
		}
		if err := d.register(); err != nil || len(d.objects) != 2 || d.has(component.ArcPackageFile) || d.has(arcInputs) || !d.local {
			t.Errorf("%+v at %v: %v, %v", f, i.Hit(), err, d.objects)
		}
		if stayed := d.unregister(); len(stayed) > 0 {
			t.Errorf("%+v at %v: %v", f, i.Hit(), stayed)
		}
		d.clean(t, f, i.Hit())
		return true
	})
}

// Who gives up after a join that was killed leaves nothing behind.
func TestLeaveAfterKilledRegister(t *testing.T) {
	everyKill(t, func(t *testing.T, f effect.Fault) bool {
		d := newDistribution(t, debHead)
		s, i := d.mortal(f)
		_ = s.Register(context.Background(), d.r, false, d.packageOn(i), func(string) {}) // it was killed
		if i.Hit() == nil {
			return false
		}
		if stayed := d.unregister(); len(stayed) > 0 {
			t.Errorf("%+v at %v: %v", f, i.Hit(), stayed)
		}
		d.clean(t, f, i.Hit())
		return true
	})
}

// A leave that is killed is continued by the next.
func TestUnregisterKilledAnywhere(t *testing.T) {
	everyKill(t, func(t *testing.T, f effect.Fault) bool {
		d := newDistribution(t, debHead)
		if err := d.register(); err != nil {
			t.Fatal(err)
		}
		s, i := d.mortal(f)
		_ = s.Unregister(context.Background(), nil, func(string) {}) // it was killed
		if i.Hit() == nil {
			return false
		}
		if stayed := d.unregister(); len(stayed) > 0 {
			t.Errorf("%+v at %v: %v", f, i.Hit(), stayed)
		}
		d.clean(t, f, i.Hit())
		return true
	})
}

// packageOn fetches onto a machine that may be cut off.
func (d *distribution) packageOn(h host.FS) Fetch {
	return func(context.Context, *desired.Artifact) error {
		return host.WriteFile(h, component.ArcPackageFile, []byte(debHead), host.Attributes{Mode: 0o600})
	}
}
