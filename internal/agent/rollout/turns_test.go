package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/internal/agent/leasetest"
)

// pool counts who works.
type pool struct {
	*leasetest.Server
	most int

	mu      sync.Mutex
	working map[string]bool
	worst   int
	done    []string
}

func (p *pool) turns(node string) *Turns {
	return &Turns{Leases: p.Server, Name: "pool-a", Holder: node, Most: p.most}
}

func (p *pool) enter(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working[node] = true
	p.worst = max(p.worst, len(p.working))
}

func (p *pool) leave(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.working, node)
	p.done = append(p.done, node)
}

// node takes its turn, works and gives it back; one that dies only stops.
func (p *pool) node(ctx context.Context, name string, work time.Duration, dies bool) error {
	t := p.turns(name)
	if err := t.Take(ctx); err != nil {
		return err
	}
	p.enter(name)
	keeping, stop := context.WithCancel(ctx)
	defer stop()
	kept := make(chan error, 1)
	go func() { kept <- t.Keep(keeping) }()
	time.Sleep(work)
	stop()
	if err := <-kept; err != nil {
		return err
	}
	p.leave(name)
	if dies {
		return nil
	}
	return t.Release(ctx)
}

// TestNodesTakeTurns: three nodes, one of which dies in the middle of its work.
func TestNodesTakeTurns(t *testing.T) {
	for _, tc := range []struct {
		most, nodes int
		work        time.Duration
		dead        string
		within      time.Duration
	}{
		{most: 1, nodes: 3, work: time.Minute, within: 5 * time.Minute},
		{most: 1, nodes: 3, work: time.Minute, dead: "n0", within: TurnFor + 6*time.Minute},
		{most: 1, nodes: 3, work: time.Hour, within: 4 * time.Hour}, // longer than a turn counts by itself
		{most: 2, nodes: 3, work: time.Minute, dead: "n1", within: 6 * time.Minute},
		{most: 3, nodes: 20, work: time.Minute, within: 14 * time.Minute},
		{most: 0, nodes: 2, work: time.Minute, within: 4 * time.Minute},
	} {
		t.Run(fmt.Sprintf("%d of %d, dead %q, %s", tc.most, tc.nodes, tc.dead, tc.work), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pool{Server: leasetest.New(), most: tc.most, working: map[string]bool{}}
				began := time.Now()
				var all sync.WaitGroup
				for i := range tc.nodes {
					name := fmt.Sprintf("n%d", i)
					all.Go(func() {
						if name != tc.dead {
							time.Sleep(time.Second) // the one that dies is first
						}
						if err := p.node(t.Context(), name, tc.work, name == tc.dead); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if len(p.done) != tc.nodes || p.worst > max(tc.most, 1) {
					t.Errorf("done %v, %d at a time", p.done, p.worst)
				}
				if took := time.Since(began); took > tc.within {
					t.Errorf("took %s", took)
				}
				if tc.dead == "" {
					l, err := p.GetLease(t.Context(), "", "pool-a")
					if err != nil || l.Spec != (coordination.LeaseSpec{}) {
						t.Errorf("not released: %+v, %v", l, err)
					}
				}
			})
		})
	}
}

func TestATurnIsFoundAgainAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{Server: leasetest.New(), most: 1}
		if err := p.turns("n1").Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.Sleep(time.Minute)
		if err := p.turns("n1").Take(t.Context()); err != nil || time.Since(began) > time.Minute {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		l, _ := p.GetLease(t.Context(), "", "pool-a")
		if l.Namespace != "kube-system" || *l.Spec.HolderIdentity != "n1" || *l.Spec.LeaseDurationSeconds != 600 ||
			!l.Spec.AcquireTime.Time.Equal(began) || !l.Spec.RenewTime.Time.Equal(time.Now()) {
			t.Errorf("%+v", l.Spec)
		}
	})
}

func TestAChangeIsNoticedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{Server: leasetest.New(), most: 1}
		if err := p.turns("n1").Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := p.turns("n2")
		var followed []string
		second.Follow = func(ctx context.Context, name string, changed func()) {
			followed = append(followed, name)
			for {
				select {
				case <-p.Changed():
					changed()
				case <-ctx.Done():
					return
				}
			}
		}
		var after time.Duration
		began := time.Now()
		done := make(chan error)
		go func() { err := second.Take(t.Context()); after = time.Since(began); done <- err }()
		time.Sleep(5 * time.Second)
		if err := p.turns("n1").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || after != 5*time.Second {
			t.Errorf("%v after %s", err, after)
		}
		if !slices.Equal(followed, []string{"pool-a"}) {
			t.Errorf("followed %q", followed)
		}
	})
}

func TestATurnIsLost(t *testing.T) {
	away := errors.New("connection refused")
	for name, tc := range map[string]struct {
		harm  func(*pool)
		after time.Duration
		cause error
	}{
		"server away for too long": {func(p *pool) { p.Fail(away) }, TurnFor, away},
		"taken by another": {func(p *pool) {
			l, _ := p.GetLease(context.Background(), "", "pool-a")
			other := "n2"
			l.Spec.HolderIdentity = &other
			_, _ = p.UpdateLease(context.Background(), l)
		}, TurnFor / 4, nil},
		"removed": {func(p *pool) { p.Remove("pool-a") }, TurnFor / 4, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pool{Server: leasetest.New(), most: 1}
				turns := p.turns("n1")
				if err := turns.Take(t.Context()); err != nil {
					t.Fatal(err)
				}
				tc.harm(p)
				began := time.Now()
				err := turns.Keep(t.Context())
				if !errors.Is(err, ErrLost) || tc.cause != nil && !errors.Is(err, tc.cause) || time.Since(began) != tc.after {
					t.Errorf("%v after %s", err, time.Since(began))
				}
			})
		})
	}
}

func TestAServerThatIsBackInTimeLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{Server: leasetest.New(), most: 1}
		turns := p.turns("n1")
		if err := turns.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.Fail(errors.New("connection refused"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		kept := make(chan error)
		go func() { kept <- turns.Keep(ctx) }()
		time.Sleep(8 * time.Minute)
		p.Fail(nil)
		if err := <-kept; err != nil {
			t.Error(err)
		}
	})
}

func TestTakeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{Server: leasetest.New(), most: 1}
		away := errors.New("connection refused")
		p.Fail(away)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.turns("n1").Take(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, away) {
			t.Error(err)
		}
	})
}

// TestOddLeases are what somebody else may have written.
func TestOddLeases(t *testing.T) {
	other, empty, hour, minus := "n2", "", int32(3600), int32(-5)
	now := meta.NowMicro()
	for name, tc := range map[string]struct {
		spec coordination.LeaseSpec
		free bool
	}{
		"released":          {coordination.LeaseSpec{}, true},
		"empty holder":      {coordination.LeaseSpec{HolderIdentity: &empty, LeaseDurationSeconds: &hour, RenewTime: &now}, true},
		"never renewed":     {coordination.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &hour}, true},
		"no duration":       {coordination.LeaseSpec{HolderIdentity: &other, RenewTime: &now}, true},
		"negative duration": {coordination.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &minus, RenewTime: &now}, true},
		"held":              {coordination.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &hour, RenewTime: &now}, false},
	} {
		seen := sights{}
		if got := seen.remaining(0, &coordination.Lease{Spec: tc.spec}) <= 0; got != tc.free {
			t.Errorf("%s: free is %v", name, got)
		}
	}
}

// skewed writes Leases of one node with the time of its clock.
type skewed struct {
	Leases
	by time.Duration
	// from then on the clock is an hour behind.
	set time.Time
}

func (s skewed) shift(l *coordination.Lease) *coordination.Lease {
	if l.Spec.RenewTime == nil {
		return l
	}
	if l = l.DeepCopy(); !s.set.IsZero() && time.Now().After(s.set) {
		s.by = -time.Hour
	}
	at := meta.NewMicroTime(l.Spec.RenewTime.Add(s.by))
	l.Spec.RenewTime = &at
	return l
}

func (s skewed) CreateLease(ctx context.Context, l *coordination.Lease) (*coordination.Lease, error) {
	return s.Leases.CreateLease(ctx, s.shift(l))
}

func (s skewed) UpdateLease(ctx context.Context, l *coordination.Lease) (*coordination.Lease, error) {
	return s.Leases.UpdateLease(ctx, s.shift(l))
}

// TestClocksOfAPool: how far the clock of the node that works is from that of the node that
// waits. It works for an hour or dies at once; in each case one works at a time, and a dead
// one's turn is free when its time has passed for who waits.
func TestClocksOfAPool(t *testing.T) {
	for name, tc := range map[string]struct {
		by    time.Duration // of the holder's clock, against the other's
		set   bool          // it is set back meanwhile
		dies  bool
		after time.Duration // when the other's turn has come
	}{
		"behind by 7 minutes":         {by: -7 * time.Minute, after: time.Hour},
		"ahead by an hour":            {by: time.Hour, after: time.Hour},
		"ahead by 40 days":            {by: 40 * 24 * time.Hour, after: time.Hour},
		"set back":                    {set: true, after: time.Hour},
		"dead, ahead by 40 days":      {by: 40 * 24 * time.Hour, dies: true, after: TurnFor},
		"dead, behind by 7 minutes":   {by: -7 * time.Minute, dies: true, after: TurnFor - 7*time.Minute},
		"dead, and clocks that agree": {dies: true, after: TurnFor},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pool{Server: leasetest.New(), most: 1}
				first, second := p.turns("n1"), p.turns("n2")
				clock := skewed{Leases: p.Server, by: tc.by}
				if tc.set {
					clock.set = time.Now().Add(10 * time.Minute)
				}
				first.Leases = clock
				if err := first.Take(t.Context()); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				go func() {
					if tc.dies {
						return
					}
					ctx, stop := context.WithTimeout(t.Context(), time.Hour)
					defer stop()
					if err := first.Keep(ctx); err != nil {
						t.Error(err)
					}
					if err := first.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}()
				if err := second.Take(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < tc.after || took > tc.after+look {
					t.Errorf("after %s, want %s", took, tc.after)
				}
			})
		})
	}
}

// Who begins to wait has seen nothing renewed. Where its clock is far ahead it takes the turn
// of a node that works, which hears of it when it renews the turn next.
func TestAClockThatIsAheadOfAllTakesTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{Server: leasetest.New(), most: 1}
		first, second := p.turns("n1"), p.turns("n2")
		first.Leases = skewed{Leases: p.Server, by: -time.Hour}
		if err := first.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := second.Take(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if err := first.Keep(t.Context()); !errors.Is(err, ErrLost) || time.Since(began) > 3*time.Minute {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// Who waits has seen the turn change hands, and goes by no clock then: not by that of the
// second node, which is an hour behind.
func TestATurnThatChangesHandsCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{Server: leasetest.New(), most: 1}
		first, second, third := p.turns("n1"), p.turns("n2"), p.turns("n3")
		second.Leases = skewed{Leases: p.Server, by: -time.Hour}
		if err := first.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		released := make(chan time.Time, 1)
		go func() {
			if err := second.Take(t.Context()); err != nil {
				t.Error(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Hour)
			defer stop()
			if err := second.Keep(ctx); err != nil {
				t.Error(err)
			}
			released <- time.Now()
			if err := second.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		taken := make(chan time.Time, 1)
		go func() {
			time.Sleep(time.Second) // the second looks before the third
			if err := third.Take(t.Context()); err != nil {
				t.Error(err)
			}
			taken <- time.Now()
		}()
		time.Sleep(5*time.Minute - time.Second)
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if began, ended := <-taken, <-released; began.Before(ended) || began.Sub(ended) > look {
			t.Errorf("the third began %s after the second had ended", began.Sub(ended))
		}
	})
}

// A turn that was seen free and then taken was seen to be taken, whatever the taker's clock
// says; and who waits anew begins anew.
func TestAFreeTurnIsASight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other, counts := "n2", int32(TurnFor/time.Second)
		behind := meta.NewMicroTime(time.Now().Add(-time.Hour))
		taken := &coordination.Lease{Spec: coordination.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &counts, RenewTime: &behind}}
		seen := sights{}
		if left := seen.remaining(0, &coordination.Lease{}); left > 0 {
			t.Errorf("a free turn counts for %s", left)
		}
		if left := seen.remaining(0, taken); left != TurnFor {
			t.Errorf("it counts for %s", left)
		}
		time.Sleep(TurnFor)
		if left := seen.remaining(0, taken); left > 0 {
			t.Errorf("that of a dead node counts for %s", left)
		}
	})
}

// A Take knows nothing of an earlier one: a turn of a node that died between is free by
// its time.
func TestATakeBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pool{Server: leasetest.New(), most: 1}
		first, second := p.turns("n1"), p.turns("n2")
		if err := first.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		keeping, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		go func() { _ = first.Keep(keeping) }()
		waiting, give := context.WithTimeout(t.Context(), time.Minute)
		defer give()
		if err := second.Take(waiting); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		<-keeping.Done()
		time.Sleep(TurnFor)
		began := time.Now()
		if err := second.Take(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// renewing has a renewal of the node's own land between the look and the write of a release,
// so many times.
type renewing struct {
	Leases
	times int
}

func (r *renewing) UpdateLease(ctx context.Context, l *coordination.Lease) (*coordination.Lease, error) {
	if r.times > 0 {
		r.times--
		now, err := r.GetLease(ctx, namespace, l.Name)
		if err != nil {
			return nil, err
		}
		if _, err := r.Leases.UpdateLease(ctx, now); err != nil {
			return nil, err
		}
	}
	return r.Leases.UpdateLease(ctx, l)
}

// A turn is given on although its renewal is under way; what others have is left alone.
func TestReleaseBesideARenewal(t *testing.T) {
	for times, free := range map[int]bool{1: true, releases - 1: true, releases: false} {
		p := &pool{Server: leasetest.New(), most: 1}
		turns := p.turns("n1")
		if err := turns.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		turns.Leases = &renewing{p.Server, times}
		err := turns.Release(t.Context())
		l, _ := p.GetLease(t.Context(), "", "pool-a")
		if (holder(l) == "") != free || (err == nil) != free {
			t.Errorf("%d renewals: held by %q, %v", times, holder(l), err)
		}
	}
}

func TestTheSecretOwnsItsLeases(t *testing.T) {
	p := &pool{Server: leasetest.New(), most: 1}
	turns := p.turns("n1")
	secret := meta.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "pool-a", UID: "u"}
	turns.Owner = func() *meta.OwnerReference { return &secret }
	if err := turns.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, _ := p.GetLease(t.Context(), "", "pool-a")
	if !slices.Equal(l.OwnerReferences, []meta.OwnerReference{secret}) {
		t.Errorf("owned by %+v", l.OwnerReferences)
	}
}
