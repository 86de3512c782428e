package bench

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAudit(t *testing.T) {
	line := func(stage, id, verb, resource, at string) string {
		return `{"stage":"` + stage + `","auditID":"` + id + `","verb":"` + verb + `","user":{"username":"a"},"objectRef":{"resource":"` + resource +
			`"},"requestReceivedTimestamp":"2026-01-02T03:04:` + at + `.000000Z"}` + "\n"
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	text := line("ResponseStarted", "1", "watch", "secrets", "01") + line("ResponseStarted", "2", "watch", "nodes", "02") +
		line("ResponseComplete", "2", "watch", "nodes", "02") + line("ResponseComplete", "3", "update", "leases", "03") +
		line("ResponseComplete", "4", "get", "leases", "59") + `{"stage":"Resp`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := readAudit(path)
	if err != nil || len(all) != 5 {
		t.Fatal(err, all)
	}
	if n := openWatches(all); n != 1 {
		t.Errorf("%d open watches, want 1", n)
	}
	from := time.Date(2026, 1, 2, 3, 4, 2, 0, time.UTC)
	got := trafficOf(all, from, from.Add(30*time.Second))
	if got.Requests != 2 || got.Writes != 1 || got.Watches != 1 || got.perMinute(got.Writes) != 2 || got.String() != "1 update leases, 1 watch nodes" {
		t.Errorf("%+v %s", got, got)
	}
}
