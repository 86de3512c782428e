package agent

import "github.com/berth-dev/berth/internal/apiserver"

// renewal hands a new certificate to the client, and tells why there is none: in the
// log each time, on the Node once, and where systemd shows the agent.
type renewal struct {
	a      *Agent
	client func(apiserver.Access) error
	told   bool
}

func (r *renewal) renewed(next apiserver.Access) error {
	if err := r.client(next); err != nil {
		return err
	}
	r.told = false
	r.a.Status("")
	return nil
}

func (r *renewal) failed(err error) {
	code, cause, remedy := r.a.Explain(err)
	r.a.Log.Error("the certificate is not renewed", "code", code, "error", cause, "hint", remedy)
	r.a.Status(code + ": " + cause + " — " + remedy)
	if !r.told {
		r.told = true
		r.a.events.Warning("CertificateNotRenewed", code+": "+cause+" — "+remedy)
	}
}
