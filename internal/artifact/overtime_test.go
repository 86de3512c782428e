package artifact

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/internal/host/memory"
)

// A run whose time ends while a source is asked once more says what the source
// did before.
func TestTimeEndsInALaterTry(t *testing.T) {
	inBubble(t, timeEndsInALaterTry)
}

func timeEndsInALaterTry(t *testing.T) {
	var asked atomic.Int32
	s := newPipeSite(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		<-r.Context().Done()
	})
	over := errors.New("time over")
	ctx, cancel := context.WithDeadlineCause(t.Context(), time.Now().Add(time.Second), over)
	defer cancel()
	_, err := s.fetcher(Options{}).Stage(ctx, memory.New(), kubelet("", s.tls.URL))
	if e, ok := errors.AsType[*DownloadError](err); !ok || e.Status != 503 || asked.Load() < 2 || !strings.Contains(hintOf(err), "in trouble") {
		t.Errorf("after %d requests: %v", asked.Load(), err)
	}
}

// A run that has little time hears of a dead source before its time is over.
func TestBudgetWithinTheRun(t *testing.T) {
	inBubble(t, budgetWithinTheRun)
}

func budgetWithinTheRun(t *testing.T) {
	s := newPipeSite(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := s.fetcher(Options{Budget: time.Minute}).Stage(ctx, memory.New(), kubelet("", s.tls.URL))
	if e, ok := errors.AsType[*DownloadError](err); !ok || e.Status != 503 || ctx.Err() != nil {
		t.Errorf("context %v: %v", ctx.Err(), err)
	}
}
