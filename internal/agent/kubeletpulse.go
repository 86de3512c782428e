package agent

import (
	"context"
	"time"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/kubeletconfig"
)

// kubeletPulse asks kubelet how it is, where its configuration has it answer.
type kubeletPulse struct {
	host host.Host
	get  func(ctx context.Context, endpoint string) error
	// at is the endpoint; "" where kubelet has none. answered: kubelet has answered there.
	at       string
	answered bool
}

// answersWithin leaves time to read the configuration of a kubelet that does not answer.
const answersWithin = 5 * time.Second

func newKubeletPulse(h host.Host) *kubeletPulse {
	return &kubeletPulse{host: h, get: apiserver.KubeletPulse(), at: kubelet.Healthz(nil)}
}

// ask says why kubelet is not well. Its configuration is read where it does not answer: it
// may run with another one by now. One that has no endpoint, or of which nobody can tell
// where that is, is well.
func (p *kubeletPulse) ask(ctx context.Context) error {
	var failed error
	if p.at != "" {
		asking, cancel := context.WithTimeout(ctx, answersWithin)
		failed = p.get(asking, p.at)
		cancel()
		if failed == nil {
			p.answered = true
			return nil
		}
	}
	config, err := kubeletconfig.Machine{Host: p.host}.Read(ctx)
	if err != nil {
		if p.answered || ctx.Err() != nil {
			return failed
		}
		return nil //nolint:nilerr // where it would answer is not known
	}
	at := kubelet.Healthz(config)
	if at == p.at {
		return failed
	}
	p.at, p.answered = at, false
	if at == "" {
		return nil
	}
	err = p.get(ctx, at)
	p.answered = err == nil
	return err
}
