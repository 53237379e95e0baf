package messages

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// DefaultTenant is the tenant of every session until others exist.
const DefaultTenant TenantID = "default"

// maxID bounds tenant and session ids, in bytes.
const maxID = 200

// TenantID names a tenant: 1–200 bytes of A-Z a-z 0-9 . _ ~ : -.
type TenantID string

// SessionID names a session inside its tenant: 1–200 bytes of A-Z a-z 0-9 . _ ~ : -. It is never parsed for meaning except
// as a SessionKey.
type SessionID string

// TurnID names an admitted turn: "turn_" and a UUIDv7.
type TurnID = string

// RunID names a run: "run_" and the UUID of the turn that it was made for.
type RunID = string

// Key is a session's identity.
type Key struct {
	Tenant  TenantID
	Session SessionID
}

// ErrInvalidID is wrapped by every error about a malformed id.
var ErrInvalidID = errors.New("invalid id")

// NewKey makes the key of a session of the default tenant.
func NewKey(id SessionID) Key { return Key{Tenant: DefaultTenant, Session: id} }

// ParseSessionID validates s. Errors: ErrInvalidID.
func ParseSessionID(s string) (SessionID, error) {
	if err := validateID("session id", s); err != nil {
		return "", err
	}
	return SessionID(s), nil
}

// Validate says whether both parts are well formed. Errors: ErrInvalidID.
func (k Key) Validate() error {
	return errors.Join(validateID("tenant id", string(k.Tenant)), validateID("session id", string(k.Session)))
}

// String is "tenant/session"; neither part can hold a slash.
func (k Key) String() string { return string(k.Tenant) + "/" + string(k.Session) }

// NewSessionID makes an id for a session that its client did not name.
func NewSessionID() SessionID { return SessionID("sess_" + newUUID().String()) }

// NewTurnID makes a turn id; ids made later by the same process sort later.
func NewTurnID() TurnID { return turnPrefix + newUUID().String() }

// RunIDOf gives the id of the run that a turn gets when it is admitted: the two share their UUID, so one index finds both.
func RunIDOf(turn TurnID) RunID { return runPrefix + strings.TrimPrefix(turn, turnPrefix) }

// TurnIDOf is the reverse of RunIDOf; false if run is not a run id.
func TurnIDOf(run RunID) (TurnID, bool) {
	rest, ok := strings.CutPrefix(run, runPrefix)
	return turnPrefix + rest, ok && rest != ""
}

const (
	turnPrefix = "turn_"
	runPrefix  = "run_"
)

func newUUID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

func validateID(what, s string) error {
	if s == "" {
		return fmt.Errorf("%w: %s is empty", ErrInvalidID, what)
	}
	if len(s) > maxID {
		return fmt.Errorf("%w: %s has %d bytes, at most %d are allowed", ErrInvalidID, what, len(s), maxID)
	}
	for i := range len(s) {
		if !idByte(s[i]) {
			return fmt.Errorf("%w: %s has byte %q at %d, allowed are A-Z a-z 0-9 . _ ~ : -", ErrInvalidID, what, s[i], i)
		}
	}
	return nil
}

func idByte(b byte) bool {
	switch {
	case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9':
		return true
	}
	return strings.IndexByte("._~:-", b) >= 0
}
