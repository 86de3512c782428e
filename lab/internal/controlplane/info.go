package controlplane

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// CAHash is the pin of the cluster's CA as kubeadm writes it.
func (p *Plane) CAHash() (string, error) {
	b, err := os.ReadFile(p.file("ca.crt"))
	if err != nil {
		return "", fmt.Errorf("read CA: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return "", fmt.Errorf("read CA: no PEM block")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("read CA: %w", err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(cert.RawSubjectPublicKeyInfo)), nil
}

// Version is the version of Kubernetes, such as v1.37.2; empty if the program
// does not say.
func (p *Plane) Version() string {
	out, err := exec.Command(filepath.Join(p.Programs, "kubelet"), "--version").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(string(out), "Kubernetes "))
}
