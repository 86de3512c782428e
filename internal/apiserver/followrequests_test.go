package apiserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const requestsPath = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// desk is an API server with certificate requests: a and b are there, c comes while
// they are watched.
type desk struct {
	mu   sync.Mutex
	puts []string
}

func csrJSON(name string) string {
	return fmt.Sprintf(`{"kind":"CertificateSigningRequest","apiVersion":"certificates.k8s.io/v1","metadata":{"name":%q,"resourceVersion":"7"}}`, name)
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		d.mu.Lock()
		d.puts = append(d.puts, r.URL.Path+" "+string(body))
		d.mu.Unlock()
		answer(w, 200, csrJSON("a"))
	case r.URL.Path != requestsPath || q.Get("fieldSelector") != "spec.signerName=signer" || q.Get("sendInitialEvents") != "":
		answer(w, 422, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case q.Get("watch") == "":
		answer(w, 200, `{"kind":"CertificateSigningRequestList","apiVersion":"certificates.k8s.io/v1","metadata":{"resourceVersion":"8"},"items":[`+csrJSON("a")+","+csrJSON("b")+`]}`)
	default:
		w.Header().Set("Content-Type", "application/json")
		for _, event := range []string{"ADDED", "DELETED"} {
			fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", event, csrJSON("c"))
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func TestFollowRequestsTellsOfEach(t *testing.T) {
	c, err := NewClient(serveCertificates(t, &desk{}).as(t, "approver"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var seen []string
	c.FollowRequests(ctx, "signer", Follower[certificates.CertificateSigningRequest]{
		See: func(r *certificates.CertificateSigningRequest) {
			if seen = append(seen, r.Name); r.Name == "c" {
				cancel()
			}
		},
		Fail: func(err error) { t.Error(err) },
	})
	if got := strings.Join(seen, " "); got != "a b c" {
		t.Errorf("told of %q", got)
	}
}

func TestApproveRequestPutsTheApproval(t *testing.T) {
	d := &desk{}
	c, err := NewClient(serveCertificates(t, d).as(t, "approver"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := &certificates.CertificateSigningRequest{ObjectMeta: meta.ObjectMeta{Name: "a", ResourceVersion: "7"}}
	r.Status.Conditions = []certificates.CertificateSigningRequestCondition{{Type: certificates.CertificateApproved, Status: "True", Reason: "why"}}
	if err := c.ApproveRequest(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if len(d.puts) != 1 || !strings.HasPrefix(d.puts[0], requestsPath+"/a/approval ") || !strings.Contains(d.puts[0], `"reason":"why"`) || !strings.Contains(d.puts[0], `"resourceVersion":"7"`) {
		t.Errorf("put %q", d.puts)
	}
}
