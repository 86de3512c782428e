package reconcile

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// newQueue tries again after a second, and then with pauses that grow.
func newQueue(longest time.Duration) workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, longest),
		workqueue.TypedRateLimitingQueueConfig[string]{Clock: quiet{}})
}

// quiet is a clock without the tick at which a queue looks every ten seconds for
// what is due: its timers say that, too, and each tick wakes the machine.
type quiet struct{ clock.RealClock }

// NewTicker returns a ticker that never ticks.
func (quiet) NewTicker(time.Duration) clock.Ticker { return still{} }

type still struct{}

// C never has a tick.
func (still) C() <-chan time.Time { return nil }

// Stop does nothing.
func (still) Stop() {}
