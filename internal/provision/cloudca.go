package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/internal/azure"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/cloudca"
	"github.com/berth-dev/berth/internal/contract"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/kind/trust"
	"github.com/berth-dev/berth/internal/converge/ledger"
	"github.com/berth-dev/berth/internal/converge/trial"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/report"
)

// AskCloudCAs asks a cloud for its certificate authorities; azure.CloudCAs.
type AskCloudCAs func(ctx context.Context, legacy bool, tell func(azure.CloudCAStep)) ([]string, error)

// asking has the steps on the way to a cloud's certificate authorities observed.
func (ask AskCloudCAs) asking(ctx context.Context, q *component.CloudCA, now func() time.Time, observe converge.Observer) ([]string, error) {
	tell := func(s azure.CloudCAStep) {
		span := converge.Span{ID: desired.ID(report.CloudCA + s.Name), Verb: "ask", Phase: "wait", Start: s.Start, End: s.End, Detail: s.Detail}
		if s.Err != nil {
			span.Error = s.Err.Error()
		}
		observe(span)
	}
	mode, at := "rcv1p", now()
	if q.Legacy {
		mode = "legacy"
	}
	tell(azure.CloudCAStep{Name: "certEndpointMode", Start: at, End: at, Detail: "mode=" + mode + ", location=" + q.Location})
	return ask(ctx, q.Legacy, tell)
}

// cloudCAs are what the machine's cloud tells. What it told before is on the machine, and
// counts where it can't be had now: a node does not lose what works.
func cloudCAs(ctx context.Context, h host.Host, q *component.CloudCA, ask AskCloudCAs, observe converge.Observer) ([]string, error) {
	told, err := ask.asking(ctx, q, h.Now, observe)
	if err == nil || ctx.Err() != nil {
		return told, err
	}
	known, unread := trust.Anchors(h, q.Known)
	if unread != nil {
		return nil, errors.Join(err, unread)
	}
	if len(known) == 0 {
		return nil, err
	}
	return known, nil
}

// CloudCAs are what keeps a machine's trust in its cloud's certificate authorities.
type CloudCAs struct {
	Ask AskCloudCAs
	// Engine works for a contract that is in force, and has an observer see what it does.
	Engine func(document []byte, facts component.Facts, observe converge.Observer) *converge.Engine
}

// Renew asks the cloud again, and has the machine trust what it tells and nothing that it
// told before and tells no more. Nothing else of the machine is looked at. said is why
// there was nothing to do. The guest agent has an event of each step, as published.
func (c CloudCAs) Renew(ctx context.Context, h host.Host) (said string, err error) {
	var all steps
	defer func() { err = errors.Join(err, all.tell(h)) }()
	kept, err := trial.Good(h, desired.OwnerAKS)
	if err != nil {
		return "", err
	}
	if kept == nil {
		return "no configuration is in force yet: the run that puts one in force asks the cloud itself", nil
	}
	doc, err := contract.Decode(kept.Document)
	if err != nil {
		return "", fmt.Errorf("read the configuration in force: %w", err)
	}
	q := contract.ReferencesOf(doc).CloudCA
	if q == nil {
		return "the configuration in force is of no cloud that has certificate authorities of its own", nil
	}
	var facts component.Facts
	if err := json.Unmarshal(kept.Facts, &facts); err != nil {
		return "", fmt.Errorf("read the facts of the configuration in force: %w", err)
	}
	if facts.CloudCAs, err = c.Ask.asking(ctx, q, h.Now, all.note); err != nil {
		return "", err
	}
	return "", c.put(ctx, h, doc, kept, facts, all.note)
}

// steps are those of a renewal that have ended.
type steps struct {
	mu    sync.Mutex
	spans []converge.Span
}

func (s *steps) note(span converge.Span) {
	if span.End.IsZero() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans = append(s.spans, span)
}

// tell has the guest agent know of them.
func (s *steps) tell(h host.Host) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.spans) == 0 {
		return nil
	}
	return report.WriteEvents(h, report.DidAll(s.spans)...)
}

// put brings the certificates of these facts into force. The facts are kept with the
// configuration before: neither a run that goes back to it nor the agent, which may look at
// the machine at any moment, shall go back to old certificates.
func (c CloudCAs) put(ctx context.Context, h host.Host, doc contract.Contract, kept *trial.Contract, facts component.Facts, observe converge.Observer) error {
	st, err := doc.Translate(facts)
	if err != nil {
		return fmt.Errorf("translate the configuration in force: %w", err)
	}
	ids, err := cloudIDs(h, st)
	if err != nil {
		return err
	}
	if err := keepFacts(ctx, h, kept, facts); err != nil {
		return err
	}
	_, err = c.Engine(kept.Document, facts, observe).ApplyScope(ctx, st, converge.Scope{IDs: ids, Ready: func() error { return stillGood(h, kept) }})
	return err
}

// errBusy is a machine that is not to be touched by the way: the unit tries again.
var errBusy = errors.New("a change of the machine is not at its end, and is left alone: the next try comes by itself")

// stillGood refuses where a run was cut off or a change is on trial, which would be gone on
// with, and where another configuration has come.
func stillGood(h host.Host, kept *trial.Contract) error {
	note, err := trial.Load(h)
	if err != nil {
		return err
	}
	now, err := trial.Good(h, desired.OwnerAKS)
	if err != nil {
		return err
	}
	if note != nil || !kept.Same(now) {
		return errBusy
	}
	return nil
}

// cloudIDs are the certificates of a state, and those of the machine that it does not have
// any more, by their names in the ledger.
func cloudIDs(h host.Host, st *desired.State) ([]desired.ID, error) {
	led, err := (&ledger.Reader{}).Load(h)
	if err != nil {
		return nil, err
	}
	if led.Owed != nil {
		return nil, errBusy
	}
	ids := []desired.ID{} // none is not all
	for _, r := range st.Resources {
		if isCloudCA(string(r.ID())) {
			ids = append(ids, r.ID())
		}
	}
	for name := range led.Entries {
		if isCloudCA(name) {
			ids = append(ids, desired.ID(name))
		}
	}
	return ids, nil
}

// isCloudCA knows a certificate by its id, or by the path of its file.
func isCloudCA(name string) bool {
	if ledger.IsPath(name) {
		return strings.HasPrefix(path.Base(name), cloudca.Prefix)
	}
	return strings.HasPrefix(name, string(desired.TrustAnchorID(cloudca.Prefix)))
}

// keepFacts makes new facts those of the configuration in force, unless another one has
// come.
func keepFacts(ctx context.Context, h host.Host, kept *trial.Contract, facts component.Facts) error {
	unlock, err := lockMachine(ctx, h, patience, "berth node cloud-ca")
	if err != nil {
		return fmt.Errorf("lock the machine: %w", err)
	}
	if err = stillGood(h, kept); err == nil {
		err = withFacts(h, kept, facts)
	}
	return errors.Join(err, unlock())
}

// withFacts keeps the configuration in force with other facts. Who calls it has the machine's
// lock.
func withFacts(h host.FS, kept *trial.Contract, facts component.Facts) error {
	text, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	return trial.Keep(h, desired.OwnerAKS, &trial.Contract{Document: kept.Document, Facts: text})
}
