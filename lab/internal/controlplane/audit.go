package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
)

// auditPolicy logs the requests of one group, and nobody else's.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: [%q]
- level: None
`

// AuditLog is where the API server logs the requests of AuditGroup.
func (p *Plane) AuditLog() string { return filepath.Join(p.Dir, "audit.log") }

func (p *Plane) auditPolicy() string { return filepath.Join(p.Dir, "audit-policy.yaml") }

func (p *Plane) writeAuditPolicy() error {
	if p.AuditGroup == "" {
		return nil
	}
	if err := os.WriteFile(p.auditPolicy(), fmt.Appendf(nil, auditPolicy, p.AuditGroup), 0o600); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	return nil
}

func (p *Plane) auditArgs() []string {
	if p.AuditGroup == "" {
		return nil
	}
	return []string{"--audit-policy-file=" + p.auditPolicy(), "--audit-log-path=" + p.AuditLog()}
}
