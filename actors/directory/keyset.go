package directory

import (
	"cmp"
	"slices"

	"github.com/correx/correx-actors/messages"
)

// maxBlock bounds the keys of one block: what a change moves at most.
const maxBlock = 256

// keySet is an ordered set of keys: by tenant, then by the bytes of the session's id. It is a row of short sorted blocks, so a
// change moves a few keys however many there are, and a page is read without looking at the others.
type keySet struct {
	// blocks are never empty; each one's keys are before those of the next. Two neighbors have more than maxBlock/2 keys.
	blocks [][]messages.Key
}

func compareKeys(a, b messages.Key) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Session, b.Session))
}

// find gives the place of a key, or the one where it belongs: in the last block that does not begin after it.
func (k *keySet) find(key messages.Key) (block, at int, found bool) {
	block, found = slices.BinarySearchFunc(k.blocks, key, func(b []messages.Key, key messages.Key) int {
		return compareKeys(b[0], key)
	})
	if found || len(k.blocks) == 0 {
		return block, 0, found
	}
	block = max(block-1, 0)
	at, found = slices.BinarySearchFunc(k.blocks[block], key, compareKeys)
	return block, at, found
}

// len is the number of keys.
func (k *keySet) len() int {
	n := 0
	for _, block := range k.blocks {
		n += len(block)
	}
	return n
}

func (k *keySet) has(key messages.Key) bool {
	_, _, found := k.find(key)
	return found
}

func (k *keySet) add(key messages.Key) {
	block, at, found := k.find(key)
	switch {
	case found:
		return
	case len(k.blocks) == 0:
		k.blocks = [][]messages.Key{{key}}
		return
	}
	keys := slices.Insert(k.blocks[block], at, key)
	k.blocks[block] = keys
	if len(keys) > maxBlock {
		half := len(keys) / 2
		k.blocks = slices.Insert(k.blocks, block+1, slices.Clone(keys[half:]))
		k.blocks[block] = slices.Clone(keys[:half])
	}
}

func (k *keySet) remove(key messages.Key) {
	block, at, found := k.find(key)
	if !found {
		return
	}
	k.blocks[block] = slices.Delete(k.blocks[block], at, at+1)
	if len(k.blocks[block]) == 0 {
		k.blocks = slices.Delete(k.blocks, block, block+1)
	}
	// Small neighbors become one, so that a crowd that has left leaves nothing behind.
	for i := min(block, len(k.blocks)-2); i >= max(block-1, 0); i-- {
		if len(k.blocks[i])+len(k.blocks[i+1]) <= maxBlock/2 {
			k.blocks[i] = slices.Concat(k.blocks[i], k.blocks[i+1])
			k.blocks = slices.Delete(k.blocks, i+1, i+2)
		}
	}
}

// after appends up to n keys behind one to dst; the key itself need not be there.
func (k *keySet) after(dst []messages.Key, key messages.Key, n int) []messages.Key {
	block, at, found := k.find(key)
	if found {
		at++
	}
	for ; block < len(k.blocks) && n > 0; block, at = block+1, 0 {
		keys := k.blocks[block][at:]
		keys = keys[:min(n, len(keys))]
		dst = append(dst, keys...)
		n -= len(keys)
	}
	return dst
}
