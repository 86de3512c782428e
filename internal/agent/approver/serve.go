package approver

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity/kubeconfig"
)

// often is how long a new token in a file may stay unseen.
const often = time.Minute

// Serve approves with what a kubeconfig shows, until ctx ends. Tokens and
// certificates that it takes from files may change meanwhile.
func Serve(ctx context.Context, h host.FS, file string, r Rule, log *slog.Logger) error {
	now, err := kubeconfig.Read(h, file)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	client, err := apiserver.NewClient(access(now))
	if err != nil {
		return err
	}
	defer client.Close()
	go refresh(ctx, h, file, client, access(now), log)
	log.Info("approving certificate requests of node agents", "server", now.Server, "machines", r.Machines, "group", r.Group)
	(&Approver{Rule: r, Calls: client, Log: log}).Run(ctx)
	return nil
}

func access(c *kubeconfig.Config) apiserver.Access {
	return apiserver.Access{Server: c.Server, CA: c.CA, Token: c.Token, Certificate: c.Certificate, Key: c.Key, Plugin: c.Plugin}
}

// refresh looks at the files every minute, as every client in a pod does: the
// kubelet replaces them by way of links, and any part of the way may be one.
func refresh(ctx context.Context, h host.FS, file string, c *apiserver.Client, shown apiserver.Access, log *slog.Logger) {
	for apiserver.Pause(ctx, often) {
		now, err := reread(h, file, c, shown)
		if err != nil {
			log.Warn("read the credential again", "kubeconfig", file, "error", err)
			continue
		}
		shown = now
	}
}

// reread shows what the files hold now, if that is something else. Watches end with
// the credential that they were begun with, so it is not shown anew for nothing.
func reread(h host.FS, file string, c *apiserver.Client, shown apiserver.Access) (apiserver.Access, error) {
	k, err := kubeconfig.Read(h, file)
	if err != nil {
		return shown, err
	}
	if now := access(k); !reflect.DeepEqual(now, shown) {
		return now, c.Renew(now)
	}
	return shown, nil
}
