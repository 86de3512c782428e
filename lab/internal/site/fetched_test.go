package site

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseFetched(t *testing.T) {
	const head = `{"start":"2026-01-01T00:00:00Z","end":"2026-01-01T00:00:04Z","spans":[`
	fetch := func(start, end string) string {
		return `{"id":"artifact:a","verb":"fetch","phase":"stage","detail":"10 MB from there","bytes":10,"start":"2026-01-01T00:00:` + start + `Z","end":"2026-01-01T00:00:` + end + `Z"}`
	}
	other := func(phase, start, end string) string {
		return `{"id":"file:/a","verb":"create","phase":"` + phase + `","start":"2026-01-01T00:00:` + start + `Z","end":"2026-01-01T00:00:` + end + `Z"}`
	}
	for name, c := range map[string]struct {
		spans string
		want  Fetched
	}{
		"nothing":                  {"", Fetched{Whole: 4 * time.Second}},
		"no fetch":                 {other("stage", "01", "02"), Fetched{Whole: 4 * time.Second}},
		"only fetches":             {fetch("02", "03") + "," + fetch("01", "02"), Fetched{4 * time.Second, 20, 2 * time.Second, 2 * time.Second}},
		"others end first":         {fetch("00", "03") + "," + other("stage", "00", "01"), Fetched{4 * time.Second, 10, 3 * time.Second, 2 * time.Second}},
		"others end last":          {fetch("00", "01") + "," + other("stage", "00", "02"), Fetched{4 * time.Second, 10, time.Second, 0}},
		"others end before":        {fetch("02", "03") + "," + other("stage", "00", "01"), Fetched{4 * time.Second, 10, time.Second, time.Second}},
		"a later phase counts not": {fetch("00", "03") + "," + other("commit", "03", "04"), Fetched{4 * time.Second, 10, 3 * time.Second, 3 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseFetched([]byte(head + c.spans + "]}"))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	silent := strings.Replace(fetch("00", "01"), `"bytes":10`, `"bytes":0`, 1)
	if _, err := parseFetched([]byte(head + silent + "]}")); err == nil || !strings.Contains(err.Error(), "artifact:a") {
		t.Errorf("a fetch without bytes: %v", err)
	}
}
