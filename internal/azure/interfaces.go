package azure

import (
	"strings"

	"github.com/berth-dev/berth/internal/component/nics"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

var bareMAC = lazyregexp.New(`^[0-9a-f]{12}$`)

// macs are the hardware addresses of all interfaces, in the service's order; "" where it
// does not tell every one.
func (n metadataNetwork) macs() string {
	var out []string
	for _, i := range n.Interface {
		digits := strings.NewReplacer(":", "", "-", "").Replace(strings.ToLower(i.MAC))
		if !bareMAC().MatchString(digits) {
			return ""
		}
		var pairs []string
		for at := 0; at < len(digits); at += 2 {
			pairs = append(pairs, digits[at:at+2])
		}
		out = append(out, strings.Join(pairs, ":"))
	}
	return strings.Join(out, ",")
}

// interfacesBefore are the interfaces beside the first as the last run knew them: a
// service that is busy must not have the others known by another sign.
func interfacesBefore(h host.FS) string {
	all := []string{""}
	for i := 1; i <= nics.Most; i++ {
		b, err := h.ReadFile(nics.File(i))
		if err != nil {
			break
		}
		all = append(all, nics.MACOf(string(b)))
	}
	return strings.Join(all, ",")
}
