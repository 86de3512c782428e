package provision

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/berth-dev/berth/internal/report"
)

func TestLastResult(t *testing.T) {
	for name, c := range map[string]struct{ result, want string }{
		"none":      {"", "there is no result of a run (" + report.SentinelPath + ")"},
		"success":   {`{"ExitCode":"0","Berth":{"Milestone":"ready"}}`, "done, reached ready"},
		"failure":   {`{"ExitCode":"34","Error":"no","Berth":{"Code":"ERR_KUBELET_START_FAIL","Hint":"look"}}`, "failed with ERR_KUBELET_START_FAIL (34): no\n  hint: look"},
		"published": {`{"ExitCode":"0"}`, "done"},
		"its error": {`{"ExitCode":"51","Error":"no"}`, "failed with ERR_K8S_API_SERVER_CONN_FAIL (51): no"},
		"damaged":   {`{"ExitCode"`, "has ended, but its result can't be read: "},
	} {
		t.Run(name, func(t *testing.T) {
			h := machineOf(`{}`)
			if c.result != "" {
				h.Put(report.ResultPath, c.result, 0o600)
				h.Put(report.SentinelPath, "", 0o600)
			}
			last, err := LastResult(h)
			if err != nil || !strings.HasPrefix(last.String(), c.want) || name != "damaged" && last.String() != c.want {
				t.Errorf("%q, %v; want %q", last, err, c.want)
			}
			text, err := json.Marshal(last)
			if readable := name != "none" && name != "damaged"; err != nil || strings.Contains(string(text), `"exitCode":`) != readable {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
}
