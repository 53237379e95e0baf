package tokenizer

import (
	"container/list"
	"hash/maphash"
	"sync"
)

// cachedCounts is how many counts are kept: the same entries are counted again for each turn of a session. About 150 bytes each.
const cachedCounts = 8192

// cache keeps the counts of the texts used last. It holds no text: neither do long ones cost memory nor does a deleted
// conversation stay in it.
type cache struct {
	seed     maphash.Seed
	capacity int

	mu      sync.Mutex
	entries map[cacheKey]*list.Element
	// used has the newest at the front; its values are counted.
	used *list.List
}

// cacheKey names a text. The seed is secret and of this process, so nobody can make two texts of one key.
type cacheKey struct {
	hash   uint64
	length int
}

type counted struct {
	key    cacheKey
	tokens int
}

func newCache(capacity int) *cache {
	return &cache{
		seed:     maphash.MakeSeed(),
		capacity: capacity,
		entries:  make(map[cacheKey]*list.Element),
		used:     list.New(),
	}
}

func (c *cache) key(text string) cacheKey {
	return cacheKey{hash: maphash.String(c.seed, text), length: len(text)}
}

func (c *cache) find(key cacheKey) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return 0, false
	}
	c.used.MoveToFront(e)
	return e.Value.(counted).tokens, true
}

func (c *cache) add(key cacheKey, tokens int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[key]; ok {
		return
	}
	if c.used.Len() >= c.capacity {
		oldest := c.used.Back()
		c.used.Remove(oldest)
		delete(c.entries, oldest.Value.(counted).key)
	}
	c.entries[key] = c.used.PushFront(counted{key: key, tokens: tokens})
}
