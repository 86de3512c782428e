package podnet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRemoveLinks: the bridge goes with what is plugged into it; a bridge of somebody
// else, and one that was there before, stay with theirs.
func TestRemoveLinks(t *testing.T) {
	ownNetwork(t)
	needs(t, "ip")
	sh(t, `for b in cni0 cbr0 br-else; do ip link add $b type bridge; ip link add v-$b type veth peer name p-$b; ip link set v-$b master $b; done; ip link add alone type veth peer name alone2`)
	removed, err := removeLinks([]string{"cbr0"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"interface v-cni0", "interface cni0"}, removed); diff != "" {
		t.Error(diff)
	}
	left := sh(t, `ip -o link | cut -d' ' -f2 | tr -d : | cut -d@ -f1 | sort | tr '\n' ' '`)
	if want := "alone alone2 br-else cbr0 lo p-br-else p-cbr0 v-br-else v-cbr0 "; left != want {
		t.Errorf("left: %s, want %s", left, want)
	}
	if removed, err := removeLinks([]string{"cbr0"}); err != nil || len(removed) != 0 {
		t.Errorf("again: %v, %v", removed, err)
	}
}
