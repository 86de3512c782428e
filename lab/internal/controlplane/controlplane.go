// Package controlplane runs etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler in a lab's network namespace.
package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/berth-dev/berth/lab/internal/netns"
	"github.com/berth-dev/berth/lab/internal/proc"
)

// Plane is a control plane: where it runs and what it is made of.
type Plane struct {
	Namespace netns.Namespace
	Address   string   // of the bridge; the API server's address for nodes
	Names     []string // DNS names that the API server's certificate carries besides Kubernetes' own
	Programs  string   // directory of the programs
	Dir       string   // keys, data, logs
	Started   func(proc.ID) error
	// AuditGroup is the group whose requests are logged; none if empty.
	AuditGroup string
}

// Start starts everything and returns when the API server is ready.
func (p *Plane) Start(ctx context.Context) error {
	if err := p.writeKeys(); err != nil {
		return err
	}
	if err := p.writeAuditPolicy(); err != nil {
		return err
	}
	if err := p.Trust(); err != nil {
		return err
	}
	if _, err := p.spawn("etcd", p.etcdArgs()); err != nil {
		return err
	}
	if _, err := p.spawn("kube-apiserver", p.apiserverArgs()); err != nil {
		return err
	}
	if err := p.AwaitReady(ctx); err != nil {
		return err
	}
	if _, err := p.spawn("kube-controller-manager", p.managerArgs()); err != nil {
		return err
	}
	_, err := p.spawn("kube-scheduler", p.schedulerArgs())
	return err
}

// StartAnother starts one more kube-apiserver of the cluster, which a test may end, and
// returns when it is ready. It keeps out of the endpoints of the Service kubernetes.
func (p *Plane) StartAnother(ctx context.Context) (proc.ID, error) {
	id, err := p.spawn("kube-apiserver", append(p.apiserverArgs(), "--secure-port="+anotherPort, "--endpoint-reconciler-type=none"))
	if err != nil {
		return id, err
	}
	return id, p.awaitReady(ctx, p.AnotherURL())
}

// spawn starts a program that outlives this process unless it is stopped.
func (p *Plane) spawn(name string, args []string) (id proc.ID, err error) {
	log, err := os.OpenFile(filepath.Join(p.Dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return id, fmt.Errorf("open log of %s: %w", name, err)
	}
	defer log.Close()
	enter := []string{"--net=" + p.Namespace.Path(), "--", filepath.Join(p.Programs, name)}
	cmd := exec.Command("nsenter", append(enter, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.Dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return id, fmt.Errorf("start %s: %w", name, err)
	}
	if id, err = proc.Of(name, cmd.Process.Pid); err != nil {
		return id, err
	}
	go func() { _ = cmd.Wait() }() // so that no zombie stays
	return id, p.Started(id)
}

// AwaitReady waits until the API server says that it is ready.
func (p *Plane) AwaitReady(ctx context.Context) error { return p.awaitReady(ctx, p.URL()) }

func (p *Plane) awaitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	client, err := p.httpClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	err = proc.Poll(ctx, "the API server", func() (bool, error) { return ready(ctx, client, url+"/readyz") })
	if err != nil {
		return fmt.Errorf("%w; see %s/kube-apiserver.log", err, p.Dir)
	}
	return nil
}

func ready(ctx context.Context, client *http.Client, url string) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 2048))
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("readyz: %s: %s", resp.Status, b)
	}
	return true, nil
}

func (p *Plane) httpClient() (*http.Client, error) {
	ca, err := os.ReadFile(p.file("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read CA: %w", err)
	}
	cert, err := tls.LoadX509KeyPair(p.file("admin.crt"), p.file("admin.key"))
	if err != nil {
		return nil, fmt.Errorf("read admin certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DialContext:     p.Namespace.Dial,
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}},
	}}, nil
}

// URL is the API server's address for nodes.
func (p *Plane) URL() string { return "https://" + p.Address + ":443" }

const anotherPort = "6443"

// AnotherURL is the address of the API server of StartAnother for nodes.
func (p *Plane) AnotherURL() string { return "https://" + p.Address + ":" + anotherPort }

func (p *Plane) file(name string) string { return filepath.Join(p.Dir, "pki", name) }
