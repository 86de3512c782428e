package adminuser

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/internal/paths"
)

// Paths of the passwords' ages.
const (
	Shadow = "/etc/shadow"
	// Record has the ages from before they were changed.
	Record = paths.StateDir + "/password-age.json"
	// Default is who logs in to a machine whose configuration names nobody, as published.
	Default = "azureuser"
)

// Age says in days how old a user's password has to be and may become, and when the user
// expires, as shadow(5) has it: -1 is nothing.
type Age struct {
	Min      int `json:"min"`
	Max      int `json:"max"`
	Inactive int `json:"inactive"`
	Expire   int `json:"expire"`
}

// never is the greatest age that is meant as none (login.defs(5)).
const never = 99999

// Lasting is the age of a password that lasts.
var Lasting = Age{Min: 0, Max: never, Inactive: -1, Expire: -1}

// Expires says whether the user can't log in any more one day.
func (a Age) Expires() bool { return a.Max >= 0 && a.Max < never || a.Expire >= 0 }

// Arguments are those of chage(1) for a user of this age.
func (a Age) Arguments(user string) []string {
	return []string{"--mindays", strconv.Itoa(a.Min), "--maxdays", strconv.Itoa(a.Max), "--inactive", strconv.Itoa(a.Inactive),
		"--expiredate", strconv.Itoa(a.Expire), user}
}

// AgeOf is a user's age in the text of Shadow; false where the user is not there, or the
// line says nothing that can be given back.
func AgeOf(shadow, user string) (Age, bool) {
	for line := range strings.Lines(shadow) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if fields[0] != user || len(fields) != 9 {
			continue
		}
		var days [4]int
		for i, f := range []string{fields[3], fields[4], fields[6], fields[7]} {
			n, err := strconv.Atoi(cmp.Or(f, "-1"))
			if err != nil {
				return Age{}, false
			}
			days[i] = max(n, -1)
		}
		return Age{days[0], days[1], days[2], days[3]}, true
	}
	return Age{}, false
}
