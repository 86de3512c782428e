package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// tokenID is the public half of a bootstrap token "id.secret": it names the
// token's Secret.
func tokenID(token desired.Secret) string {
	id, _, ok := strings.Cut(token.Reveal(), ".")
	if !ok || len(id) != 6 {
		return "ID"
	}
	return id
}

// Lacks implements converge.Issuer.
func (i *Issuer) Lacks(c *desired.ClientCertificate) error {
	switch {
	case c.Azure == nil:
		_, err := i.bootstrapToken(c)
		return err
	case i.tokens != nil:
		return i.tokens.Lacks(c.Azure)
	}
	return nil // Issue says who is missing
}

// token is what the certificate is asked for with.
func (i *Issuer) token(ctx context.Context, c *desired.ClientCertificate) (desired.Secret, error) {
	if c.Azure != nil {
		return i.azureToken(ctx, c)
	}
	return i.bootstrapToken(c)
}

// bootstrapToken reads it where the document says that it is: only when it is needed.
func (i *Issuer) bootstrapToken(c *desired.ClientCertificate) (desired.Secret, error) {
	from, remedy := "the contract", "give the contract a bootstrap token"
	switch {
	case c.TokenFile != "":
		from, remedy = c.TokenFile, "put a bootstrap token (kubeadm token create) into "+c.TokenFile
	case c.TokenEnv != "":
		from, remedy = "the variable "+c.TokenEnv, "run berth with a bootstrap token (kubeadm token create) in the variable "+c.TokenEnv
	}
	token, err := BootstrapToken(i.h, c.TokenFile, c.TokenEnv, c.Token.Reveal())
	switch {
	case err != nil:
		err = fmt.Errorf("no valid certificate is here: %w", err)
	case token == "":
		err = errors.New("no valid certificate is here and " + from + " brings no token")
	case c.Token == "" && !tokenForm().MatchString(token.Reveal()):
		err = errors.New("what " + from + " holds is no bootstrap token, id.secret: 6 and 16 of a-z and 0-9")
	default:
		return token, nil
	}
	return "", &Error{Reason: ReasonNoToken, Node: c.NodeName, Server: c.Server, Err: err, Remedy: remedy}
}

// BootstrapToken is what a file, a variable or the document itself holds, the first that is
// named; "" where the variable is not set.
func BootstrapToken(h host.FS, file, variable, text string) (desired.Secret, error) {
	switch {
	case file != "":
		b, err := h.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read the bootstrap token: %w", err)
		}
		text = string(b)
	case variable != "":
		text = os.Getenv(variable)
	}
	return desired.Secret(strings.TrimSpace(text)), nil
}

// azureToken is that of an identity of Azure. Its error says itself what to check.
func (i *Issuer) azureToken(ctx context.Context, c *desired.ClientCertificate) (desired.Secret, error) {
	if i.tokens == nil {
		return "", errors.New("there is nobody to ask for a token of Azure")
	}
	token, err := i.tokens.Bootstrap(ctx, c.Azure, c.Via)
	if err != nil {
		return "", fmt.Errorf("client certificate for node %s: %w", c.NodeName, err)
	}
	return token, nil
}

// tokenForm is the form of a token (cluster-bootstrap, token/api).
var tokenForm = lazyregexp.New(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
