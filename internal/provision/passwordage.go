package provision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/berth-dev/berth/internal/component/adminuser"
	"github.com/berth-dev/berth/internal/host"
)

// LetPasswordsLast has the passwords of users last, where they would expire. What they were
// before is noted first. A user who is not there is none.
func LetPasswordsLast(ctx context.Context, h host.Host, users []string) error {
	was, err := agesBefore(h)
	if err != nil {
		return err
	}
	shadow, err := shadowFile(h)
	if err != nil {
		return err
	}
	for _, user := range users {
		age, there := adminuser.AgeOf(shadow, user)
		if !there || !age.Expires() {
			continue
		}
		was[user] = age
		if err := noteAges(h, was); err != nil {
			return err
		}
		if err := setAge(ctx, h, user, adminuser.Lasting); err != nil {
			return err
		}
	}
	return nil
}

// GivePasswordAgesBack makes the passwords' ages what they were, unless somebody has changed
// them since; left names the users of whom that is so.
func GivePasswordAgesBack(ctx context.Context, h host.Host) (left []string, err error) {
	was, err := agesBefore(h)
	if err != nil || len(was) == 0 {
		return nil, err
	}
	shadow, err := shadowFile(h)
	if err != nil {
		return nil, err
	}
	for _, user := range slices.Sorted(maps.Keys(was)) {
		age, there := adminuser.AgeOf(shadow, user)
		switch {
		case there && age == adminuser.Lasting:
			if err := setAge(ctx, h, user, was[user]); err != nil {
				return left, err
			}
		case there && age != was[user]:
			left = append(left, user)
		}
		delete(was, user)
		if err := noteAges(h, was); err != nil {
			return left, err
		}
	}
	return left, nil
}

func setAge(ctx context.Context, h host.Host, user string, age adminuser.Age) error {
	if _, err := h.Run(ctx, host.Command{Path: "chage", Args: age.Arguments(user)}); err != nil {
		return fmt.Errorf("change when the password of %s expires: %w", user, err)
	}
	return nil
}

func shadowFile(h host.FS) (string, error) {
	b, err := h.ReadFile(adminuser.Shadow)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

// agesBefore are the ages that were noted; a note that says nothing is none.
func agesBefore(h host.FS) (map[string]adminuser.Age, error) {
	out := map[string]adminuser.Age{}
	b, err := h.ReadFile(adminuser.Record)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil && json.Unmarshal(b, &out) != nil || out == nil {
		out = map[string]adminuser.Age{}
	}
	return out, err
}

func noteAges(h host.FS, was map[string]adminuser.Age) error {
	if len(was) == 0 {
		if err := h.Remove(adminuser.Record); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(was)
	if err == nil {
		err = host.PrivateDir(h, path.Dir(adminuser.Record))
	}
	if err != nil {
		return err
	}
	return host.WriteFile(h, adminuser.Record, append(text, '\n'), host.Attributes{Mode: 0o600})
}

// expiring are the users who log in to a machine of whose configuration nobody says who
// does, and whose passwords would expire, or would if berth did not see to it.
func expiring(h host.FS) []string {
	shadow, err := shadowFile(h)
	if err != nil {
		return nil
	}
	was, err := agesBefore(h)
	if err != nil {
		return nil
	}
	var out []string
	for _, user := range []string{adminuser.Default, "root"} {
		age, there := adminuser.AgeOf(shadow, user)
		if _, seen := was[user]; there && (age.Expires() || seen) {
			out = append(out, user)
		}
	}
	return out
}
