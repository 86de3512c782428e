package exitcode

import (
	"errors"
	"fmt"
	"testing"
)

// TestOfCommand: whoever was told to stop says nothing of the document.
func TestOfCommand(t *testing.T) {
	refused := &RefusedError{errors.New("no field")}
	for err, want := range map[error]int{
		errors.New("x"):               Failed,
		refused:                       Refused,
		fmt.Errorf("/f: %w", refused): Refused,
		fmt.Errorf("%w: %w", ErrInterrupted, refused): CommandInterrupted,
	} {
		if got := OfCommand(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}
