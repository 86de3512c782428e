package bench

import (
	"strings"
	"testing"
	"time"
)

func TestLargeDocumentFitsASecret(t *testing.T) {
	d := oscWords{File: "1", Trigger: "2", Large: true}.document()
	if len(d) < 1e6 || len(d) > 1<<20 {
		t.Errorf("%d bytes", len(d))
	}
	if n := strings.Count(d, "- path: "); n != oscFiles+2 {
		t.Errorf("%d files", n)
	}
	if n := strings.Count(d, "- name: "); n != oscUnits+1 {
		t.Errorf("%d units", n)
	}
}

func TestReadUsage(t *testing.T) {
	const text = "pid: 42\nName:\tberth\nVmHWM:\t   37000 kB\nVmRSS:\t   36000 kB\nRssAnon:\t   10000 kB\nwrite_bytes: 4096\ncancelled_write_bytes: 1\ncpu: 1.5e+09\n"
	got, err := readUsage(text)
	if want := (usage{RSS: 36000, Anon: 10000, Peak: 37000, Written: 4096, CPU: 1500 * time.Millisecond, PID: "42"}); err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
	for _, bad := range []string{"", strings.Replace(text, "VmHWM", "x", 1), strings.Replace(text, "4096", "many", 1), strings.Replace(text, "cpu", "x", 1)} {
		if _, err := readUsage(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

// A document whose units had to stay up was durable before it was in force.
func TestDurableAt(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	log := []logged{
		{Time: at(1), Msg: "a document is durable, and its units have yet to stay up", Checksum: "one"},
		{Time: at(2), Msg: "a document is in force", Checksum: "one"},
		{Time: at(3), Msg: "a document is in force", Checksum: "two"},
	}
	if got := durableAt(log, "one", at(2)); !got.Equal(at(1)) {
		t.Error(got)
	}
	if got := durableAt(log, "two", at(3)); !got.Equal(at(3)) {
		t.Error(got)
	}
}
