package artifact

import (
	"context"
	"errors"
	"io"
	"slices"
)

// errChanged ends a pass whose content can't be continued: it begins again.
var errChanged = errors.New("the content changed or can't be continued")

// feed is one blob as it comes in from the sources of a group: when one breaks
// off, it goes on with the same or the next where the content stopped.
type feed struct {
	tries *tries
	ctx   context.Context
	from  []*source
	// verified: the sources promise the same digest, so that any may continue what
	// another began.
	verified bool

	cur      *flow
	at       *source
	watchdog *watchdog
	pos      int64
	size     int64
	tag      string
	// total is the size of all blobs of the pass, where there are several.
	total int64
	// next is the index of the source to ask first: the one after that which broke
	// off, since a source that is slow answers again, and is slow again.
	next int
	// used are the sources whose bytes are in the content.
	used []*source
	// resumed counts the times that a flow was continued.
	resumed int
}

// Read implements io.Reader.
func (f *feed) Read(p []byte) (int, error) {
	for {
		if f.cur == nil {
			if err := f.connect(); err != nil {
				return 0, err
			}
		}
		n, err := f.cur.body.Read(p)
		if n > 0 {
			f.advance(n)
			return n, nil // an error comes again with the next Read
		}
		switch {
		case errors.Is(err, io.EOF) && f.watchdog.ctx.Err() == nil && (f.size < 0 || f.pos >= f.size):
			return 0, io.EOF
		case errors.Is(err, io.EOF):
			err = io.ErrUnexpectedEOF
		case err == nil:
			continue
		}
		if err := f.drop(err); err != nil {
			return 0, err
		}
	}
}

// whole is the size of what the pass takes in, -1 if unknown.
func (f *feed) whole() int64 {
	if f.total > 0 {
		return f.total
	}
	return f.size
}

func (f *feed) advance(n int) {
	f.pos += int64(n)
	f.tries.progress(n, f.whole())
	if !slices.Contains(f.used, f.at) {
		f.used = append(f.used, f.at)
	}
}

// drop gives up a flow that broke; the error is nil if another may continue it.
func (f *feed) drop(err error) error {
	err = f.watchdog.clean(ociError(f.at, err))
	f.close()
	if f.ctx.Err() != nil {
		return context.Cause(f.ctx)
	}
	f.tries.note(f.at, err)
	f.next = slices.Index(f.from, f.at) + 1
	if !f.verified && f.tag == "" {
		return err
	}
	return nil
}

// close ends the flow.
func (f *feed) close() {
	if f.cur != nil {
		f.watchdog.stop()
		_ = f.cur.body.Close()
		f.cur = nil
	}
}

// connect asks the sources in turn. Before the first byte it does so once, so
// that other groups get their chance; later for as long as the budget lasts.
func (f *feed) connect() error {
	for {
		if f.round() {
			return nil
		}
		if f.ctx.Err() != nil {
			return context.Cause(f.ctx)
		}
		if f.pos == 0 || errors.Is(f.tries.last, errChanged) || !slices.ContainsFunc(f.from, (*source).alive) || !f.tries.rest(f.ctx, f.from) {
			return f.tries.last
		}
	}
}

// round asks every source once.
func (f *feed) round() bool {
	for i := range f.from {
		s := f.from[(f.next+i)%len(f.from)]
		if !s.alive() || s.resting(f.tries.now()) || f.ctx.Err() != nil {
			continue
		}
		if err := f.ask(s); err != nil {
			f.tries.note(s, err)
			continue
		}
		return true
	}
	return false
}

// ask opens a source where the content stopped.
func (f *feed) ask(s *source) error {
	f.tries.attempts++
	wd := watch(f.ctx, f.tries)
	wd.begin()
	fl, err := s.origin.open(wd.ctx, f.pos, f.tagFor(s))
	wd.end(0)
	if err == nil {
		fl.body = &fed{fl.body, wd}
		err = f.continues(s, fl)
	}
	if err != nil {
		err = wd.clean(ociError(s, err))
		wd.stop()
		return err
	}
	if f.pos > 0 {
		f.resumed++
	}
	f.cur, f.at, f.watchdog, f.size, f.tag = fl, s, wd, fl.size, fl.tag
	return nil
}

// tagFor is the validator for a source: another server's would only make it
// begin again.
func (f *feed) tagFor(s *source) string {
	if f.verified && f.at != s {
		return ""
	}
	return f.tag
}

// continues brings a new flow to where the content stopped.
func (f *feed) continues(s *source, fl *flow) error {
	err := f.sameContent(fl)
	if fl.size > f.tries.opt.MaxBytes {
		err = tooLarge(s)
	}
	if skip := f.pos - fl.start; err == nil && skip > 0 {
		_, err = io.CopyN(io.Discard, fl.body, skip)
	}
	if err != nil {
		_ = fl.body.Close()
	}
	return err
}

func (f *feed) sameContent(fl *flow) error {
	if f.pos == 0 || f.verified {
		return nil
	}
	if fl.tag != f.tag || fl.size != f.size {
		return errChanged
	}
	return nil
}
