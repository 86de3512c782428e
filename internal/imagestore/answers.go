package imagestore

import (
	"context"

	versionapi "github.com/containerd/containerd/api/services/version/v1"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Answers asks containerd for its version; nil says that it lives. It hardly waits:
// where containerd does not run, the error is a *NotRunningError at once, and where
// it is mute, after three seconds.
func (s *Store) Answers(ctx context.Context) error {
	c, err := s.open()
	if err != nil {
		return err
	}
	defer c.close()
	c.at = c.at.hasty()
	if err := c.glance(ctx); err != nil {
		return err
	}
	if err := c.connected(ctx); err != nil {
		return err
	}
	if _, err := versionapi.NewVersionClient(c.conn).Version(ctx, &emptypb.Empty{}); err != nil {
		return &Error{Doing: "ask for its version", Err: err}
	}
	return nil
}
