package imagestore

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"time"

	leasesapi "github.com/containerd/containerd/api/services/leases/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
)

// leaseLife is how long containerd keeps what an import that never came back has
// sent.
const leaseLife = 24 * time.Hour

// importLabel marks our leases with the digest of the image they are for;
// expireLabel is containerd's.
const (
	importLabel = "berth.dev/import"
	expireLabel = "containerd.io/gc.expire"
)

// lease makes containerd keep what is sent under the returned context, until
// release or for a day. The lease of an earlier import of the image that was cut
// off goes on, unless half of its life is over: then both hold what was sent.
func (c *session) lease(ctx context.Context, digest string) (leased context.Context, release func() error, err error) {
	var id string
	err = c.call(ctx, "lease", func(ctx context.Context) error {
		all, err := c.leasesFor(ctx, digest)
		if err != nil {
			return err
		}
		if id = lasting(all, time.Now().Add(leaseLife/2)); id != "" {
			return nil
		}
		id = "berth-" + rand.Text()
		expires := time.Now().Add(leaseLife).UTC().Format(time.RFC3339)
		_, err = c.leases.Create(ctx, &leasesapi.CreateRequest{ID: id, Labels: map[string]string{importLabel: digest, expireLabel: expires}})
		return err
	})
	return metadata.AppendToOutgoingContext(ctx, leaseKey, id), func() error { return c.release(ctx, digest) }, err
}

func (c *session) leasesFor(ctx context.Context, digest string) ([]*leasesapi.Lease, error) {
	r, err := c.leases.List(ctx, &leasesapi.ListRequest{Filters: []string{`labels."` + importLabel + `"==` + strconv.Quote(digest)}})
	return r.GetLeases(), err
}

// lasting is a lease that lives until a time; "" if none does.
func lasting(all []*leasesapi.Lease, until time.Time) string {
	for _, l := range all {
		if t, err := time.Parse(time.RFC3339, l.Labels[expireLabel]); err == nil && t.After(until) {
			return l.ID
		}
	}
	return ""
}

func (c *session) release(ctx context.Context, digest string) error {
	return c.call(ctx, "end lease", func(ctx context.Context) error {
		all, err := c.leasesFor(ctx, digest)
		if err != nil {
			return err
		}
		for _, l := range all {
			if _, err := c.leases.Delete(ctx, &leasesapi.DeleteRequest{ID: l.ID}); err != nil && !isCode(err, codes.NotFound) {
				return err
			}
		}
		return nil
	})
}

// isLeaseGone recognises a call under a lease that is no more.
func isLeaseGone(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && isCode(e.Err, codes.NotFound) && strings.Contains(message(e.Err), "lease")
}
