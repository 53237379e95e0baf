package messages

import (
	"errors"
	"fmt"
	"strings"
)

// SessionKey is the meaning of a session id that an agent or a channel gave out:
//
//	agent:<agent>:main[:sub:<sub>]
//	agent:<agent>:<channel>:<account>:<peer kind>:<peer>[:thread:<thread>][:sub:<sub>]
//
// In the text every byte of a part that a session id cannot hold, and ":" and "~" as well, is written as "~" and two hex
// digits in upper case, so a part may be any bytes and never splits the key. Each SessionKey has one text.
type SessionKey struct {
	Kind  SessionKeyKind
	Agent string
	// Channel, Account, PeerKind, Peer and Thread belong to KeyChannel; they are empty for KeyMain.
	Channel  string
	Account  string
	PeerKind PeerKind
	Peer     string
	// Thread; "" = none.
	Thread string
	// Sub tells several sessions of the same key apart; "" = none.
	Sub string
}

// SessionKeyKind says which of the two forms a SessionKey has.
type SessionKeyKind string

// Session key kinds.
const (
	KeyMain    SessionKeyKind = "main"
	KeyChannel SessionKeyKind = "channel"
)

// Valid says whether k is one of the kinds.
func (k SessionKeyKind) Valid() bool { return k == KeyMain || k == KeyChannel }

// PeerKind is what the other side of a channel is.
type PeerKind string

// Peer kinds.
const (
	PeerDM      PeerKind = "dm"
	PeerGroup   PeerKind = "group"
	PeerChannel PeerKind = "channel"
	PeerMain    PeerKind = "main"
	PeerUnknown PeerKind = "unknown"
)

// Valid says whether k is one of the kinds.
func (k PeerKind) Valid() bool {
	switch k {
	case PeerDM, PeerGroup, PeerChannel, PeerMain, PeerUnknown:
		return true
	}
	return false
}

// Errors of session keys; exactly one of the two is wrapped.
var (
	// ErrInvalidSessionKey: the text has not the form of a key, or the key has parts that its kind has not.
	ErrInvalidSessionKey = errors.New("invalid session key")
	// ErrInvalidPeerKind: only the peer kind is wrong.
	ErrInvalidPeerKind = errors.New("invalid peer kind")
)

const (
	keyAgent  = "agent"
	keyMain   = "main"
	keyThread = "thread"
	keySub    = "sub"
)

// SessionID gives the key's session id. Errors: ErrInvalidSessionKey (also when the text has over 200 bytes),
// ErrInvalidPeerKind.
func (k SessionKey) SessionID() (SessionID, error) {
	if err := k.validate(); err != nil {
		return "", err
	}
	id, err := ParseSessionID(k.String())
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalidSessionKey, err)
	}
	return id, nil
}

// String is the key's text, thread before sub. It is a session id only if SessionID says so.
func (k SessionKey) String() string {
	parts := []string{keyAgent, escapePart(k.Agent), keyMain}
	if k.Kind == KeyChannel {
		parts = append(parts[:2], escapePart(k.Channel), escapePart(k.Account), escapePart(string(k.PeerKind)), escapePart(k.Peer))
	}
	if k.Thread != "" {
		parts = append(parts, keyThread, escapePart(k.Thread))
	}
	if k.Sub != "" {
		parts = append(parts, keySub, escapePart(k.Sub))
	}
	return strings.Join(parts, ":")
}

func (k SessionKey) validate() error {
	switch k.Kind {
	case KeyMain:
		if k.Channel != "" || k.Account != "" || k.PeerKind != "" || k.Peer != "" || k.Thread != "" {
			return fmt.Errorf("%w: a main key has only agent and sub", ErrInvalidSessionKey)
		}
		return nil
	case KeyChannel:
		if !k.PeerKind.Valid() {
			return fmt.Errorf("%w: %q", ErrInvalidPeerKind, string(k.PeerKind))
		}
		return nil
	}
	return fmt.Errorf("%w: kind %q", ErrInvalidSessionKey, string(k.Kind))
}

// ParseSessionKey reads a session id as a key. It takes thread and sub in either order and an empty one as none; the key's
// own text has the order above. Errors: ErrInvalidSessionKey, ErrInvalidPeerKind.
func ParseSessionKey(s string) (SessionKey, error) {
	if _, err := ParseSessionID(s); err != nil {
		return SessionKey{}, fmt.Errorf("%w: %w", ErrInvalidSessionKey, err)
	}
	parts := strings.Split(s, ":")
	if len(parts) < 3 || parts[0] != keyAgent {
		return SessionKey{}, fmt.Errorf("%w: it does not start with %q and an agent", ErrInvalidSessionKey, keyAgent+":")
	}
	if parts[2] == keyMain && (len(parts) == 3 || len(parts) == 5) {
		return parseMain(parts)
	}
	if len(parts) < 6 {
		return SessionKey{}, fmt.Errorf("%w: it has %d parts, a channel key has at least 6", ErrInvalidSessionKey, len(parts))
	}
	return parseChannel(parts)
}

func parseMain(parts []string) (SessionKey, error) {
	k := SessionKey{Kind: KeyMain}
	err := unescapeInto(&k.Agent, parts[1])
	if err == nil && len(parts) == 5 {
		if parts[3] != keySub {
			return SessionKey{}, fmt.Errorf("%w: a main key goes on with %s only", ErrInvalidSessionKey, keySub)
		}
		err = unescapeInto(&k.Sub, parts[4])
	}
	if err != nil {
		return SessionKey{}, err
	}
	return k, nil
}

func parseChannel(parts []string) (SessionKey, error) {
	k := SessionKey{Kind: KeyChannel, PeerKind: PeerKind(parts[4])}
	err := errors.Join(
		unescapeInto(&k.Agent, parts[1]),
		unescapeInto(&k.Channel, parts[2]),
		unescapeInto(&k.Account, parts[3]),
		unescapeInto(&k.Peer, parts[5]),
		k.parseExtras(parts[6:]),
	)
	if err != nil {
		return SessionKey{}, err
	}
	if !k.PeerKind.Valid() {
		return SessionKey{}, fmt.Errorf("%w: %q", ErrInvalidPeerKind, parts[4])
	}
	return k, nil
}

func (k *SessionKey) parseExtras(parts []string) error {
	if len(parts)%2 != 0 {
		return fmt.Errorf("%w: %s has no value", ErrInvalidSessionKey, parts[len(parts)-1])
	}
	seen := make(map[string]bool, 2)
	for i := 0; i < len(parts); i += 2 {
		name, value := parts[i], parts[i+1]
		if seen[name] {
			return fmt.Errorf("%w: %s comes twice", ErrInvalidSessionKey, name)
		}
		seen[name] = true
		var err error
		switch name {
		case keyThread:
			err = unescapeInto(&k.Thread, value)
		case keySub:
			err = unescapeInto(&k.Sub, value)
		default:
			err = fmt.Errorf("%w: %q is not %s or %s", ErrInvalidSessionKey, name, keyThread, keySub)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// escapeByte starts an escape. It is in the alphabet of session ids, so an escaped key is one.
const escapeByte = '~'

const upperHex = "0123456789ABCDEF"

func escaped(b byte) bool { return b == ':' || b == escapeByte || !idByte(b) }

// EscapeKeyPart writes any bytes as a part of a key: it holds no ":" and only what a session id may hold.
func EscapeKeyPart(s string) string { return escapePart(s) }

// UnescapeKeyPart undoes EscapeKeyPart. It takes only what EscapeKeyPart writes. Errors: ErrInvalidSessionKey.
func UnescapeKeyPart(part string) (string, error) {
	var out string
	err := unescapeInto(&out, part)
	return out, err
}

func escapePart(s string) string {
	var out strings.Builder
	for i := range len(s) {
		if b := s[i]; escaped(b) {
			out.Write([]byte{escapeByte, upperHex[b>>4], upperHex[b&0xF]})
		} else {
			out.WriteByte(b)
		}
	}
	return out.String()
}

// unescapeInto undoes escapePart. It takes only what escapePart writes: a second spelling would be a second session.
func unescapeInto(to *string, part string) error {
	var out strings.Builder
	for i := 0; i < len(part); i++ {
		b := part[i]
		if b == escapeByte {
			if i+2 >= len(part) {
				return fmt.Errorf("%w: %q ends inside an escape", ErrInvalidSessionKey, part)
			}
			high, low := strings.IndexByte(upperHex, part[i+1]), strings.IndexByte(upperHex, part[i+2])
			b = byte(high<<4 | low) //nolint:gosec // both are below 16, or caught next
			if high < 0 || low < 0 || !escaped(b) {
				return fmt.Errorf("%w: %q is no escape that is needed", ErrInvalidSessionKey, part[i:i+3])
			}
			i += 2
		} else if escaped(b) {
			return fmt.Errorf("%w: %q needs an escape", ErrInvalidSessionKey, string(rune(b)))
		}
		out.WriteByte(b)
	}
	*to = out.String()
	return nil
}
