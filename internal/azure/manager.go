package azure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/berth-dev/berth/internal/desired"
)

// API versions of Azure Resource Manager.
const (
	clusterVersion    = "2024-02-01" // Microsoft.ContainerService
	machineVersion    = "2022-03-10" // Microsoft.HybridCompute
	assignmentVersion = "2022-04-01" // Microsoft.Authorization
)

// Manager is Azure Resource Manager as one identity sees it. Use Source.Manager.
type Manager struct {
	source   *Source
	identity *desired.AzureIdentity
	address  string
	client   *http.Client
	token    Token
}

// shownFor is how long a token must be good for yet when it is shown.
const shownFor = 2 * time.Minute

// Manager asks for a token for Azure Resource Manager at an address, which every
// request then shows. Close gives back its connections.
func (s *Source) Manager(ctx context.Context, a *desired.AzureIdentity, via *desired.Egress, address string) (*Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, Budget)
	defer cancel()
	m := &Manager{source: s.By(via), identity: a, address: strings.TrimSuffix(address, "/")}
	var err error
	if m.token, err = m.source.obtain(ctx, a, m.address); err != nil {
		return nil, err
	}
	if m.client, err = s.endpoints.outward(via); err != nil {
		return nil, failed("speak to "+m.address, "Check proxy and trust.", err)
	}
	return m, nil
}

// Close gives back its connections.
func (m *Manager) Close() { m.client.CloseIdleConnections() }

// call sends a request for a resource. A body is sent as JSON.
func (m *Manager) call(ctx context.Context, method, id, version string, body any, p patience) (answer, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return answer{}, err
		}
	}
	return m.send(ctx, method, m.address+(&url.URL{Path: id}).EscapedPath()+"?"+url.Values{"api-version": {version}}.Encode(), text, p)
}

func (m *Manager) send(ctx context.Context, method, address string, body []byte, p patience) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, Budget)
	defer cancel()
	if err := m.renew(ctx); err != nil {
		return answer{}, err
	}
	return m.source.patiently(ctx, m.client, p, func() (*http.Request, error) {
		req, err := http.NewRequest(method, address, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+m.token.Text.Reveal())
		if len(body) > 0 {
			req.Header.Set("Content-Type", "application/json")
		}
		return req, nil
	})
}

// renew asks for another token where this one ends while it is waited for something.
func (m *Manager) renew(ctx context.Context) error {
	if m.token.Expires.Sub(m.source.host.Now()) > shownFor {
		return nil
	}
	t, err := m.source.obtain(ctx, m.identity, m.address)
	if err == nil {
		m.token = t
	}
	return err
}

// persist asks until the answer is another one, or the time is over: what Azure said
// last says best why.
func (m *Manager) persist(outer context.Context, budget time.Duration, ask func(context.Context) (answer, error), again func(answer) bool) (answer, error) {
	ctx, cancel := context.WithTimeout(outer, budget)
	defer cancel()
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = m.source.endpoints.pause, 15*m.source.endpoints.pause
	var last *answer
	for {
		got, err := ask(ctx)
		switch {
		case err != nil && last != nil && ctx.Err() != nil && outer.Err() == nil:
			return *last, nil
		case err != nil || !again(got):
			return got, err
		}
		last = &got
		select {
		case <-time.After(pauses.NextBackOff()):
		case <-ctx.Done():
			return got, nil
		}
	}
}

// operationBudget is how long an operation may take that Azure goes on with after its
// answer.
const operationBudget = 5 * time.Minute

// awaitDone waits until what was accepted is done: where the answer says so, and as late as
// it says. It takes the address only where the token is meant for it.
//
// Source: learn.microsoft.com/azure/azure-resource-manager/management/async-operations.
func (m *Manager) awaitDone(ctx context.Context, a answer) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, operationBudget)
	defer cancel()
	where := a.header.Get("Azure-AsyncOperation")
	if where == "" {
		where = a.header.Get("Location")
	}
	for a.status == http.StatusAccepted || inProgress(a) {
		if where == "" || !strings.HasPrefix(where, m.address+"/") {
			return a, fmt.Errorf("the answer names no URL of %s that tells when it is done", m.address)
		}
		select {
		case <-time.After(max(retryAfter(a.header, m.source.host.Now()), m.source.endpoints.pause)):
		case <-ctx.Done():
			return a, errors.New("it is not done yet")
		}
		var err error
		if a, err = m.send(ctx, http.MethodGet, where, nil, commonPatience); err != nil {
			return a, err
		}
	}
	return a, operationError(a)
}

// operation is the state of what Azure does by and by.
type operation struct {
	Status string `json:"status"`
	Error  struct{ Code, Message string }
}

func operationOf(a answer) (o operation) {
	if a.status == http.StatusOK {
		_ = json.Unmarshal(a.body, &o) // the resource itself says none
	}
	return o
}

// inProgress: every other word than these three is one of an operation that goes on.
func inProgress(a answer) bool {
	switch operationOf(a).Status {
	case "", "Succeeded", "Failed", "Canceled":
		return false
	}
	return true
}

func operationError(a answer) error {
	if o := operationOf(a); o.Status == "Failed" || o.Status == "Canceled" {
		return &StatusError{Status: a.status, Code: line(o.Error.Code), Text: line(o.Error.Message)}
	}
	return nil
}

// isStatus says whether an error is an answer with a status.
func isStatus(err error, status int) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && e.Status == status
}

// isCode says whether an error is an answer with a code of Azure Resource Manager.
func isCode(err error, code string) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && strings.EqualFold(e.Code, code)
}
