package credential

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// given is the access in a kubeconfig that somebody else keeps: the agent asks for no
// certificate of its own then.
func (k *Keeper) given() (apiserver.Access, error) {
	c, err := kubeconfig.Read(k.Host, k.Given)
	if err != nil {
		return apiserver.Access{}, &exitcode.Error{Number: exitcode.Credential, Err: fmt.Errorf("%s: %w", k.Given, err),
			Remedy: "Correct the file; or unset KUBECONFIG in the agent's unit and clientConnection.kubeconfig in its configuration: it then asks for a certificate of its own."}
	}
	return apiserver.Access{Server: c.Server, CA: c.CA, Token: c.Token, Certificate: c.Certificate, Key: c.Key, Plugin: c.Plugin, Silence: silence}, nil
}

// reread takes what the files hold to which the kubeconfig refers: each hour, and when the
// API server knows the credential no more. It renews nothing.
func (k *Keeper) reread(ctx context.Context, a apiserver.Access, renewed func(apiserver.Access) error, failed func(error)) {
	for {
		if k.sleep(ctx, look) {
			_ = k.Host.Sleep(ctx, time.Duration(k.Random*float64(apart))) // it ends early with ctx alone
		}
		if ctx.Err() != nil {
			return
		}
		next, err := k.given()
		if len(next.CA) == 0 {
			next.CA = a.CA // somebody is about to write it: without one the authorities of the machine would count
		}
		if err == nil && !sameCredential(a, next) {
			if err = renewed(next); err == nil {
				a = next
			}
		}
		if err != nil {
			failed(err)
		}
	}
}

func sameCredential(a, b apiserver.Access) bool {
	return a.Token == b.Token && bytes.Equal(a.Certificate, b.Certificate) && bytes.Equal(a.Key, b.Key) && bytes.Equal(a.CA, b.CA)
}
