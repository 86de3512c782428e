package provision

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/internal/component/searchdomain"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/host/memory"
)

// keytab is a file with one principal of a realm.
func keytab(realm string) string {
	e := binary.BigEndian.AppendUint16(nil, 1)
	e = append(binary.BigEndian.AppendUint16(e, uint16(len(realm))), realm...)
	return "\x05\x02" + string(append(binary.BigEndian.AppendUint32(nil, uint32(len(e))), e...))
}

func TestEnterRealm(t *testing.T) {
	for name, c := range map[string]struct {
		keytab, made string
		code         int
		says         string
		joins        bool
	}{
		"enters":            {made: keytab("CORP.TEST"), says: "is in CORP.TEST now", joins: true},
		"is in it":          {keytab: keytab("CORP.TEST"), says: "is in CORP.TEST already"},
		"is in another":     {keytab: keytab("OTHER.TEST"), code: exitcode.SearchDomain, says: "has keys of OTHER.TEST"},
		"is refused":        {code: exitcode.SearchDomain, says: "exit code 1: realm: Couldn't join", joins: true},
		"ends without keys": {made: keytab("OTHER.TEST"), code: exitcode.SearchDomain, says: "has no key of CORP.TEST", joins: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := memory.New()
			h.Put(searchdomain.PasswordFile, "hunter2\n", 0o600)
			if c.keytab != "" {
				h.Put(searchdomain.Keytab, c.keytab, 0o600)
			}
			var ran []host.Command
			h.Program(realmProgram, func(cmd host.Command) host.Output {
				if ran = append(ran, cmd); c.made == "" {
					return host.Output{ExitCode: 1, Stderr: []byte("realm: Couldn't join\n")}
				}
				h.Put(searchdomain.Keytab, c.made, 0o600)
				return host.Output{}
			})
			said, err := EnterRealm(t.Context(), h, "CORP.TEST", "user@CORP.TEST")
			if err != nil {
				said = err.Error()
			}
			if exitcode.Of(err) != c.code || !strings.Contains(said, c.says) {
				t.Errorf("code %d: %s", exitcode.Of(err), said)
			}
			var want []host.Command
			if c.joins {
				want = []host.Command{{Path: realmProgram, Args: []string{"join", "--user=user@CORP.TEST", "CORP.TEST"}, Stdin: []byte("hunter2\n")}}
			}
			if diff := cmp.Diff(want, ran); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A machine without realmd is told so, with the code of domains.
func TestEnterRealmWithoutRealmd(t *testing.T) {
	h := memory.New()
	h.Put(searchdomain.PasswordFile, "hunter2\n", 0o600)
	if _, err := EnterRealm(t.Context(), h, "CORP.TEST", "u"); exitcode.Of(err) != exitcode.SearchDomain {
		t.Error(err)
	}
}
