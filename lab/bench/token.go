package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// Tokens are the times of `berth token` on a machine with a managed identity.
type Tokens struct {
	// Request is that of the flow's one request alone, by curl's own count.
	Request []time.Duration
	// Uncached and Cached are those of the command.
	Uncached, Cached []time.Duration
}

const (
	identityPath = "/root/identity.json"
	tokenServer  = "6dae42f8-4368-4678-94ff-3960e28e3630"
	tokenTenant  = "11111111-1111-1111-1111-111111111111"
	askForToken  = "berth token --identity " + identityPath
	requestToken = "curl -sSf -o /dev/null -H Metadata:true -w '%{time_total}' " +
		"'http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&resource=" + tokenServer + "'"
)

// tokens measures and prints.
func tokens(ctx context.Context, l *lab.Lab, o Options, w io.Writer) error {
	t, err := MeasureTokens(ctx, l, o)
	t.Print(w)
	return err
}

// MeasureTokens has a machine ask the lab's metadata service, each way in turn.
func MeasureTokens(ctx context.Context, l *lab.Lab, o Options) (t Tokens, err error) {
	address := netip.MustParseAddrPort(serve.IMDSAddress)
	if err := l.AddAddress(ctx, address.Addr()); err != nil {
		return t, err
	}
	defer func() { // the nodes of other parts are not in Azure
		err = errors.Join(err, l.Command(ctx, "ip", "addr", "del", address.Addr().String()+"/32", "dev", "lab0").Run())
	}()
	at, err := l.Listen(ctx, "tcp", address.String())
	if err != nil {
		return t, err
	}
	metadata := serve.NewMetadata(serve.Instance{})
	metadata.AddIdentity(serve.Identity{ClientID: "c", ObjectID: "o", ResourceID: "/identities/bench"})
	metadata.IssuedBy(serve.NewEntra("https://entra.test", tokenTenant))
	server := serve.Start(at, metadata)
	defer func() { err = errors.Join(err, server.Close()) }()
	n, err := l.AddNode(ctx, lab.NodeConfig{Name: "token", UserData: []byte("#cloud-config\n{}\n")})
	if err != nil {
		return t, err
	}
	if _, err := n.WaitBooted(ctx); err != nil {
		return t, err
	}
	if err := n.WriteFile(identityPath, []byte(`{"kind": "managedIdentity", "serverId": "`+tokenServer+`"}`), 0o600); err != nil {
		return t, err
	}
	if err := quiesce(ctx, false); err != nil {
		return t, err
	}
	for range max(o.Pairs, 10) {
		if err := t.round(ctx, n); err != nil {
			return t, err
		}
	}
	return t, n.Remove(ctx)
}

func (t *Tokens) round(ctx context.Context, n *lab.Node) error {
	text, err := n.Output(ctx, "sh", "-c", requestToken)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return err
	}
	t.Request = append(t.Request, time.Duration(seconds*float64(time.Second)))
	for _, m := range []struct {
		script string
		into   *[]time.Duration
	}{{"rm -rf /run/berth/tokens; " + timed(askForToken), &t.Uncached}, {timed(askForToken), &t.Cached}} {
		text, err := n.Output(ctx, "bash", "-c", m.script)
		if err != nil {
			return fmt.Errorf("%s: %w", m.script, err)
		}
		took, err := elapsed(text)
		if err != nil {
			return err
		}
		*m.into = append(*m.into, took)
	}
	return nil
}

// own is what the command takes besides its request, by medians.
func (t *Tokens) own() time.Duration {
	return summarise(t.Uncached).Median - summarise(t.Request).Median
}

// Print writes a line for each time.
func (t *Tokens) Print(w io.Writer) {
	if len(t.Cached) == 0 {
		return
	}
	fmt.Fprintf(w, "\nberth token, managed identity (%d rounds; median, min–max, seconds)\n", len(t.Cached))
	fmt.Fprintf(w, "  the request alone  %s\n", summarise(t.Request))
	fmt.Fprintf(w, "  uncached           %s   besides the request %.3f   bound 20 ms\n", summarise(t.Uncached), t.own().Seconds())
	fmt.Fprintf(w, "  cached             %s   bound 30 ms\n", summarise(t.Cached))
}
