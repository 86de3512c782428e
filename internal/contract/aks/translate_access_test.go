package aks

import (
	"slices"
	"testing"

	"github.com/berth-dev/berth/internal/component/motd"
	"github.com/berth-dev/berth/internal/desired"
)

func TestMessageThatIsNoBase64(t *testing.T) {
	cfg := sample(t, "full.json")
	cfg.MessageOfTheDay = "hello"
	st := translate(t, cfg, factsOf("full"))
	if st.Lookup(desired.FileID(motd.Path)) != nil {
		t.Error("a message that can not be read is shown")
	}
	note := desired.FieldNote{Path: "message_of_the_day", Reason: "it is no base64"}
	if !slices.Contains(st.Unused, note) {
		t.Errorf("unused are %v, which lack %v", st.Unused, note)
	}
}
