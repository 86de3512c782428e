package imagestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berth-dev/berth/internal/oci"
)

// chunk is how many bytes a message carries; containerd takes up to 16 MiB.
const chunk = 1 << 20

// upload is one blob on its way into containerd.
type upload struct {
	*session
	blob
	source oci.Source
	// resumed: bytes of an earlier attempt were there already.
	resumed bool
}

// ingest is the name under which containerd keeps what it has of the blob.
func (u *upload) ingest() string { return "berth-" + u.Digest.String() }

func (u *upload) doing() string { return fmt.Sprintf("store %s (%d bytes)", u.Digest, u.Size) }

// run waits for its turn and sends what containerd lacks.
func (u *upload) run(ctx context.Context) error {
	done, err := u.turns.take(ctx, u.Digest.String())
	if err != nil {
		return err
	}
	defer done()
	return u.verified(ctx)
}

// verified drops bytes of an earlier import that turn out to be wrong, and sends
// the blob once more.
func (u *upload) verified(ctx context.Context) error {
	err := u.stubborn(ctx, u.doing(), u.attempt)
	if !isMismatch(err) {
		return err
	}
	if aerr := u.abort(ctx); aerr != nil {
		return errors.Join(err, aerr)
	}
	if u.resumed {
		u.resumed = false
		return u.verified(ctx)
	}
	return &DigestError{Want: u.Digest.String(), Err: errors.New(message(errors.Unwrap(err)))}
}

// isMismatch recognises containerd's refusal to commit other bytes than expected.
func isMismatch(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && isCode(e.Err, codes.FailedPrecondition) && strings.Contains(message(e.Err), "unexpected commit") ||
		ok && strings.Contains(message(e.Err), "failed size validation")
}

// abort drops what containerd has received.
func (u *upload) abort(ctx context.Context) error {
	return u.call(ctx, "abort "+u.Digest.String(), func(ctx context.Context) error {
		_, err := u.content.Abort(ctx, &contentapi.AbortRequest{Ref: u.ingest()})
		if isCode(err, codes.NotFound) {
			return nil
		}
		return err
	})
}

// errRaced asks for another attempt.
var errRaced = status.Error(codes.Unavailable, "another client has just stored it")

// attempt is one stream, as long as containerd answers.
func (u *upload) attempt(ctx context.Context) (moved bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	mute := silence(u.at.patience)
	stream := &patient{limit: u.at.patience, slack: u.flush(), timer: time.AfterFunc(u.at.patience, func() { cancel(mute) })}
	defer stream.timer.Stop()
	if stream.Content_WriteClient, err = u.content.Write(ctx); err == nil {
		moved, err = u.converse(ctx, stream)
	}
	if err != nil && errors.Is(context.Cause(ctx), mute) {
		err = mute
	}
	return moved, err
}

// converse asks how much containerd has, sends the rest and commits. A blob that
// is there already is leased by the question.
func (u *upload) converse(ctx context.Context, stream contentapi.Content_WriteClient) (moved bool, err error) {
	ask := &contentapi.WriteContentRequest{Action: contentapi.WriteAction_STAT, Ref: u.ingest(), Total: u.Size, Expected: u.Digest.String()}
	have, err := exchange(stream, ask)
	if isCode(err, codes.AlreadyExists) {
		return false, u.relabel(ctx)
	}
	if err != nil {
		return false, err
	}
	from := have.Offset
	if from > u.Size {
		from = 0 // containerd truncates where a write begins anew
	}
	u.resumed = u.resumed || from > 0
	return u.transfer(ctx, stream, from)
}

// exchange sends a message and takes the answer.
func exchange(stream contentapi.Content_WriteClient, m *contentapi.WriteContentRequest) (*contentapi.WriteContentResponse, error) {
	if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return stream.Recv() // after io.EOF it says why
}

// transfer sends and listens at the same time: containerd answers each message.
// Where the source fails, containerd still takes what is under way.
func (u *upload) transfer(ctx context.Context, stream contentapi.Content_WriteClient, from int64) (moved bool, err error) {
	ear := make(chan struct{})
	var reached int64
	var heard error
	go func() {
		defer close(ear)
		reached, heard = listen(stream, from)
	}()
	failed := u.send(ctx, stream, from)
	err = stream.CloseSend()
	<-ear
	if isCode(heard, codes.AlreadyExists) {
		heard = errRaced // asking once more leases it
	}
	return reached > from, cmp.Or(failed, heard, err)
}

// listen takes the answers up to the one to the commit, and returns how far
// containerd came.
func listen(stream contentapi.Content_WriteClient, from int64) (int64, error) {
	for {
		r, err := stream.Recv()
		if err != nil {
			return from, err
		}
		from = max(from, r.Offset)
		if r.Action == contentapi.WriteAction_COMMIT {
			drain(stream)
			return from, nil
		}
	}
}

// drain waits until containerd has closed a stream whose commit it confirmed.
func drain(stream contentapi.Content_WriteClient) {
	for {
		if _, err := stream.Recv(); err != nil {
			return
		}
	}
}

// send sends the bytes from an offset on, and the commit. Its errors are the
// source's: of a stream that broke the listener hears why.
func (u *upload) send(ctx context.Context, stream contentapi.Content_WriteClient, from int64) error {
	r, err := u.openAt(ctx, from)
	if err != nil {
		return err
	}
	defer r.Close()
	buf := make([]byte, min(chunk, max(1, u.Size-from)))
	for from < u.Size {
		n, err := io.ReadFull(r, buf[:min(int64(len(buf)), u.Size-from)])
		m := &contentapi.WriteContentRequest{Action: contentapi.WriteAction_WRITE, Offset: from, Data: buf[:n]}
		if stream.Send(m) != nil {
			return nil
		}
		from += int64(n)
		if err != nil {
			return fmt.Errorf("blob %s: read %d of %d bytes: %w", u.Digest, from, u.Size, err)
		}
	}
	_ = stream.Send(&contentapi.WriteContentRequest{Action: contentapi.WriteAction_COMMIT, Offset: from, Total: u.Size,
		Expected: u.Digest.String(), Labels: u.labels})
	return nil
}

// openAt opens the source behind the first bytes.
func (u *upload) openAt(ctx context.Context, from int64) (io.ReadCloser, error) {
	r, err := u.source.Open(ctx, u.Descriptor)
	if err != nil {
		return nil, fmt.Errorf("open blob %s: %w", u.Digest, err)
	}
	if sized, ok := r.(interface{ Size() int64 }); ok && sized.Size() != u.Size {
		err = &DigestError{Want: u.Digest.String(), Err: fmt.Errorf("it has %d bytes, the manifest says %d", sized.Size(), u.Size)}
	} else if s, ok := r.(io.Seeker); ok {
		_, err = s.Seek(from, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, r, from)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}
