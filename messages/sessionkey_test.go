package messages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSessionKeysParse(t *testing.T) {
	t.Parallel()
	dm := SessionKey{Kind: KeyChannel, Agent: "a", Channel: "telegram", Account: "acc", PeerKind: PeerDM, Peer: "p"}
	with := func(thread, sub string) SessionKey {
		k := dm
		k.Thread, k.Sub = thread, sub
		return k
	}
	for text, want := range map[string]SessionKey{
		"agent:a:main":                                   {Kind: KeyMain, Agent: "a"},
		"agent::main":                                    {Kind: KeyMain},
		"agent:a:main:sub:x":                             {Kind: KeyMain, Agent: "a", Sub: "x"},
		"agent:a:telegram:acc:dm:p":                      dm,
		"agent:a:telegram:acc:dm:p:thread:t":             with("t", ""),
		"agent:a:telegram:acc:dm:p:sub:s":                with("", "s"),
		"agent:a:telegram:acc:dm:p:thread:t:sub:s":       with("t", "s"),
		"agent:a:telegram:acc:dm:p:sub:s:thread:t":       with("t", "s"),
		"agent:a:telegram:acc:dm:p:thread:":              dm,
		"agent:::::":                                     {},
		"agent:a:main:acc:main:p":                        {Kind: KeyChannel, Agent: "a", Channel: "main", Account: "acc", PeerKind: PeerMain, Peer: "p"},
		"agent:a~3Ab:irc:~C3~A4:unknown:~7E:thread:t~20": {Kind: KeyChannel, Agent: "a:b", Channel: "irc", Account: "ä", PeerKind: PeerUnknown, Peer: "~", Thread: "t "},
	} {
		k, err := ParseSessionKey(text)
		if want.Kind == "" {
			require.ErrorIs(t, err, ErrInvalidPeerKind, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, k, text)
	}
}

func TestMalformedSessionKeysAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "agent", "agent:a", "user:a:main", "Agent:a:main", "agent:a:other", "agent:a:main:sub", "agent:a:main:thread:x",
		"agent:a:tg:acc:dm", "agent:a:tg:acc:dm:p:thread", "agent:a:tg:acc:dm:p:topic:t",
		"agent:a:tg:acc:dm:p:thread:1:thread:2", "agent:a:tg:acc:dm:p:sub:1:sub:2", "agent:a:tg:acc:dm:p:thread:1:sub:2:thread:3",
		"agent:ä:main", "agent:a b:main", "agent:~:main", "agent:~3:main", "agent:~3a:main", "agent:~41:main", "agent:~GG:main",
		"agent:a:main:sub:~2", "agent:" + strings.Repeat("x", 200) + ":main",
	} {
		k, err := ParseSessionKey(text)
		require.ErrorIs(t, err, ErrInvalidSessionKey, "%q gave %+v", text, k)
		require.NotErrorIs(t, err, ErrInvalidPeerKind)
		require.Zero(t, k)
	}
	for _, text := range []string{
		"agent:a:tg:acc:DM:p", "agent:a:tg:acc::p", "agent:a:tg:acc:user:p", "agent:a:tg:acc:d~6D:p",
		"agent:a:tg:acc:channel_peer:p:thread:t", "agent:a:main:sub:x:sub",
	} {
		_, err := ParseSessionKey(text)
		require.ErrorIs(t, err, ErrInvalidPeerKind, text)
		require.NotErrorIs(t, err, ErrInvalidSessionKey, text)
	}
}

func TestSessionKeysAreValidated(t *testing.T) {
	t.Parallel()
	_, err := SessionKey{}.SessionID()
	require.ErrorIs(t, err, ErrInvalidSessionKey)
	_, err = SessionKey{Kind: KeyMain, Agent: "a", Thread: "t"}.SessionID()
	require.ErrorIs(t, err, ErrInvalidSessionKey, "the text would lose the thread")
	_, err = SessionKey{Kind: KeyChannel, PeerKind: "friend"}.SessionID()
	require.ErrorIs(t, err, ErrInvalidPeerKind)
	_, err = SessionKey{Kind: KeyMain, Agent: strings.Repeat(":", 70)}.SessionID()
	require.ErrorIs(t, err, ErrInvalidSessionKey, "three bytes each are over 200")
	require.ErrorIs(t, err, ErrInvalidID)
	require.False(t, SessionKeyKind("sub").Valid())
}

// TestSessionKeysRoundTripAnyBytes: a part with ":" or any other byte gives a valid session id, and comes back (W46).
func TestSessionKeysRoundTripAnyBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := func(name string) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, name)) }
		k := SessionKey{Kind: KeyMain, Agent: part("agent"), Sub: part("sub")}
		if rapid.Bool().Draw(t, "channel") {
			k.Kind, k.Channel, k.Account, k.Peer, k.Thread = KeyChannel, part("channel"), part("account"), part("peer"), part("thread")
			k.PeerKind = rapid.SampledFrom([]PeerKind{PeerDM, PeerGroup, PeerChannel, PeerMain, PeerUnknown}).Draw(t, "kind")
		}
		id, err := k.SessionID()
		require.NoError(t, err)
		require.Equal(t, k.String(), string(id))
		got, err := ParseSessionKey(string(id))
		require.NoError(t, err)
		require.Equal(t, k, got)
	})
}

func FuzzParseSessionKey(f *testing.F) {
	f.Add("agent:a:main:sub:x")
	f.Add("agent:a~3A:tg:acc:dm:p:thread:t:sub:s")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ParseSessionKey(text)
		if err != nil {
			return
		}
		id, err := k.SessionID()
		require.NoError(t, err)
		again, err := ParseSessionKey(string(id))
		require.NoError(t, err)
		require.Equal(t, k, again)
		require.LessOrEqual(t, len(id), len(text), "one text, and no longer than any other that names the key")
	})
}
