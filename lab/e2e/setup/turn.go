package setup

import (
	"sync"
	"testing"
)

// atOnce is how many tests run beside each other: each has a machine or two, of which most
// wait for something.
const atOnce = 12

// turns are whose turn it is. The testing package gives the next place to any test that waits; a
// long one that comes last would have the machine for itself. So its own limit is out of reach
// (-parallel), and long ones are first here.
var turns = struct {
	mu          sync.Mutex
	free        int
	long, short []chan struct{}
}{free: atOnce}

// Parallel runs a test beside others, when it is its turn.
func Parallel(t *testing.T) {
	t.Helper()
	t.Parallel()
	Turn(t)
}

// ParallelLong is Parallel for a test of more than a minute or two.
func ParallelLong(t *testing.T) {
	t.Helper()
	t.Parallel()
	take(t, &turns.long)
}

// Turn waits for a test's turn. It ends with the test, or with done: before subtests that wait
// for theirs.
func Turn(t *testing.T) (done func()) {
	t.Helper()
	return take(t, &turns.short)
}

// TurnLong is Turn before subtests that are long.
func TurnLong(t *testing.T) (done func()) {
	t.Helper()
	return take(t, &turns.long)
}

func take(t *testing.T, waiting *[]chan struct{}) (done func()) {
	t.Helper()
	turns.mu.Lock()
	if turns.free > 0 {
		turns.free--
		turns.mu.Unlock()
	} else {
		mine := make(chan struct{})
		*waiting = append(*waiting, mine)
		turns.mu.Unlock()
		<-mine
	}
	done = sync.OnceFunc(give)
	t.Cleanup(done)
	return done
}

// give hands a turn on.
func give() {
	turns.mu.Lock()
	defer turns.mu.Unlock()
	for _, waiting := range []*[]chan struct{}{&turns.long, &turns.short} {
		if len(*waiting) > 0 {
			close((*waiting)[0])
			*waiting = (*waiting)[1:]
			return
		}
	}
	turns.free++
}
