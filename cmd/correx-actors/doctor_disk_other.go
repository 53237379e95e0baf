//go:build !linux

package main

import (
	"errors"
	"os"
)

// network says whether a folder is on another machine, which is not known here.
func network(string) bool { return false }

// freeBytes is not measured here.
func freeBytes(string) (uint64, error) { return 0, errors.ErrUnsupported }

// writable tries it.
func writable(folder string) error {
	f, err := os.CreateTemp(folder, ".correx-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
