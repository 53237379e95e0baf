package directory

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/correx/correx-actors/messages"
)

// A set of keys is what a sorted list of them is, whatever came and went; and its blocks stay short and filled.
func TestAKeySetIsASortedList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var set keySet
		var twin []messages.Key
		keys := rapid.Custom(func(t *rapid.T) messages.Key {
			return messages.Key{
				Tenant:  messages.TenantID(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "tenant")),
				Session: messages.SessionID(strconv.Itoa(rapid.IntRange(0, 2000).Draw(t, "session"))),
			}
		})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for _, key := range rapid.SliceOfN(keys, 1, 400).Draw(t, "keys") {
					set.add(key)
					if at, found := slices.BinarySearchFunc(twin, key, compareKeys); !found {
						twin = slices.Insert(twin, at, key)
					}
				}
			},
			"remove": func(t *rapid.T) {
				for _, key := range rapid.SliceOfN(keys, 1, 600).Draw(t, "keys") {
					at, found := slices.BinarySearchFunc(twin, key, compareKeys)
					require.Equal(t, found, set.has(key))
					set.remove(key)
					if found {
						twin = slices.Delete(twin, at, at+1)
					}
				}
			},
			"after": func(t *rapid.T) {
				key, n := keys.Draw(t, "key"), rapid.IntRange(0, 700).Draw(t, "n")
				at, found := slices.BinarySearchFunc(twin, key, compareKeys)
				if found {
					at++
				}
				require.Equal(t, slices.Concat([]messages.Key{{}}, twin[at:min(at+n, len(twin))]), set.after([]messages.Key{{}}, key, n))
			},
			"": func(t *rapid.T) {
				require.True(t, slices.Equal(twin, slices.Concat(set.blocks...)))
				require.Equal(t, len(twin), set.len())
				for i, block := range set.blocks {
					require.NotEmpty(t, block)
					require.LessOrEqual(t, len(block), maxBlock)
					if i > 0 {
						require.Greater(t, len(block)+len(set.blocks[i-1]), maxBlock/2)
					}
				}
			},
		})
	})
}
