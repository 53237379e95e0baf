//go:build !unix

package mcp

import "syscall"

// ownGroup: there are no process groups here.
func ownGroup() *syscall.SysProcAttr { return nil }

// signal ends the process by force: nothing softer reaches it here.
func (p *process) signal(bool) { _ = p.cmd.Process.Kill() }
