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

func TestStoreAnswers(t *testing.T) {
	f := newFake(t)
	store := func(answer time.Duration) *Store { return &Store{own: settings{socket: f.socket, answer: answer}} }
	var away *NotRunningError
	if err := store(0).Answers(t.Context()); !errors.As(err, &away) {
		t.Errorf("without a socket: %v", err)
	}
	f.start()
	if err := store(0).Answers(t.Context()); err != nil {
		t.Error(err)
	}
	f.failing(func(string) error { return status.Error(codes.Internal, "broken inside") })
	if err := store(0).Answers(t.Context()); err == nil || !strings.Contains(err.Error(), "broken inside") {
		t.Errorf("a broken one: %v", err)
	}
	mute(t, f, "Version")
	if err := store(50 * time.Millisecond).Answers(t.Context()); err == nil {
		t.Error("a mute one answers")
	}
}
