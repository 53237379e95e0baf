//go:build unix

package mcp

import "syscall"

// ownGroup has a command lead a process group, so that what it starts ends with it, and so that a Ctrl-C at our terminal does not
// reach it before it was told to end.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// signal asks the whole group to end, or ends it by force. That nobody is left is no error.
func (p *process) signal(force bool) {
	with := syscall.SIGTERM
	if force {
		with = syscall.SIGKILL
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, with)
}
