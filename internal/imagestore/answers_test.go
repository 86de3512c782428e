package imagestore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	versionapi "github.com/containerd/containerd/api/services/version/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Version implements the version service.
func (f *fake) Version(context.Context, *emptypb.Empty) (*versionapi.VersionResponse, error) {
	return &versionapi.VersionResponse{Version: "2.1"}, nil
}

func TestPulse(t *testing.T) {
	f := newFake(t)
	pulse := func(answer time.Duration) *Pulse {
		p := &Pulse{store: Store{own: settings{socket: f.socket, answer: answer}}}
		t.Cleanup(p.Close)
		return p
	}
	var away *NotRunningError
	if err := pulse(0).Answers(t.Context()); !errors.As(err, &away) {
		t.Errorf("without a socket: %v", err)
	}
	f.start()
	if err := pulse(0).Answers(t.Context()); err != nil {
		t.Error(err)
	}
	f.failing(func(string) error { return status.Error(codes.Internal, "broken inside") })
	if err := pulse(0).Answers(t.Context()); err == nil || !strings.Contains(err.Error(), "broken inside") {
		t.Errorf("a broken one: %v", err)
	}
	mute(t, f, "Version")
	if err := pulse(50 * time.Millisecond).Answers(t.Context()); err == nil {
		t.Error("a mute one answers")
	}
}

// TestPulseKeepsItsConnection while containerd answers, and makes another where that
// one has ended: a containerd that was restarted is well.
func TestPulseKeepsItsConnection(t *testing.T) {
	f := startFake(t)
	p := &Pulse{store: Store{own: settings{socket: f.socket}}}
	defer p.Close()
	ask := func() *session {
		t.Helper()
		if err := p.Answers(t.Context()); err != nil {
			t.Fatal(err)
		}
		return p.kept
	}
	first := ask()
	if ask() != first {
		t.Error("another connection for the second question")
	}
	f.stop()
	f.start()
	ask()
	f.stop()
	var away *NotRunningError
	if err := p.Answers(t.Context()); !errors.As(err, &away) {
		t.Errorf("of one that was stopped: %v", err)
	}
	f.start()
	ask()
}
