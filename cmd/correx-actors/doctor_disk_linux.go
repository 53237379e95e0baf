package main

import (
	"fmt"
	"slices"
	"syscall"
)

// networkFileSystems are the kinds whose locks or mapped memory do not hold: NFS, SMB, SMB2, CIFS, Coda, 9P, AFS, Ceph.
var networkFileSystems = []uint32{0x6969, 0x517B, 0xFE534D42, 0xFF534D42, 0x73757245, 0x01021997, 0x5346414F, 0x00C36400}

// network says whether a folder is on another machine.
func network(folder string) bool {
	var stat syscall.Statfs_t
	if syscall.Statfs(folder, &stat) != nil {
		return false
	}
	return slices.Contains(networkFileSystems, uint32(stat.Type)) //nolint:gosec // the kinds have 32 bits
}

// freeBytes is what this user may still write to a folder's file system.
func freeBytes(folder string) (uint64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return 0, fmt.Errorf("measure free space of %s: %w", folder, err)
	}
	return stat.Bavail * uint64(stat.Bsize), nil //nolint:gosec // never negative
}

// writable says why this user may make no file in a folder.
func writable(folder string) error {
	const writeAndEnter = 2 | 1
	return syscall.Access(folder, writeAndEnter)
}
