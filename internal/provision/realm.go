package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/berth-dev/berth/internal/component/searchdomain"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
)

// realmProgram is realmd's, of the image.
const realmProgram = "/usr/sbin/realm"

// EnterRealm makes the machine one of a domain, and says so. One whose keytab has keys of
// the domain is in it; one that has keys of another is not taken out of there: that is an
// error, for it is not what was asked for.
func EnterRealm(ctx context.Context, h host.Host, realm, user string) (said string, err error) {
	before, err := keytabRealms(h)
	switch {
	case err != nil:
	case slices.Contains(before, realm):
		return "the machine is in " + realm + " already: " + searchdomain.Keytab + " has its keys", nil
	case len(before) > 0:
		err = fmt.Errorf("%s has keys of %s: the machine is in another domain than %s", searchdomain.Keytab, strings.Join(before, ", "), realm)
	default:
		err = joinRealm(ctx, h, realm, user)
	}
	if err != nil {
		return "", &exitcode.Error{Number: exitcode.SearchDomain, During: "enter the domain " + realm, Err: err,
			Remedy: "Domain, user and password are in custom_search_domain_config; realm discover " + realm + " tells whether the domain is found. A machine leaves another domain with realm leave."}
	}
	return "the machine is in " + realm + " now", nil
}

func joinRealm(ctx context.Context, h host.Host, realm, user string) error {
	password, err := h.ReadFile(searchdomain.PasswordFile)
	if err != nil {
		return err
	}
	if _, err := h.Run(ctx, host.Command{Path: realmProgram, Args: []string{"join", "--user=" + user, realm}, Stdin: password}); err != nil {
		return err
	}
	after, err := keytabRealms(h)
	if err == nil && !slices.Contains(after, realm) {
		err = fmt.Errorf("realm join has ended well, and %s has no key of %s", searchdomain.Keytab, realm)
	}
	return err
}

func keytabRealms(h host.FS) ([]string, error) {
	b, err := h.ReadFile(searchdomain.Keytab)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return searchdomain.Realms(b), err
}
