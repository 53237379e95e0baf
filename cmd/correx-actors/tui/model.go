package tui

import (
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// model is the whole chat as data. Update is the only way to change it.
type model struct {
	// tools of the active run, as shown.
	tools   client.Tools
	session string
	// keys begins the idempotency keys of this chat; sent counts them.
	keys string
	sent int

	width, height int
	styles        styles
	log           transcript
	// scroll is the number of lines below the shown ones; 0 = follow what is new.
	scroll int
	lines  int // of the transcript at its last layout

	input  editor
	recall recall

	conn link
	// trouble is why there is no connection.
	trouble string
	// live is the first number of the output that is not in the history which the chat began with.
	live uint64
	// replayed is the run that was active then: of it, older output counts too.
	replayed string

	status, stage string // of the workflow
	queued        int
	running       string // the active run; "" = none
	attempt       uint32
	seconds       int // since the run was seen to begin
	ticking       bool
	aborting      bool

	// asks are the questions for the session's state without an answer, oldest first.
	asks []ask
	// stale: the state has changed since it was last asked for.
	stale bool
	// strange: a run answers inputs from elsewhere, whose texts the next state tells.
	strange bool

	// armed: Ctrl-C was pressed a moment ago; presses tells a later timer from an earlier one.
	armed   bool
	presses int
}

// link is the state of the connection.
type link string

const (
	linkConnecting   link = "connecting…"
	linkConnected    link = "connected"
	linkReconnecting link = "reconnecting…"
	linkEnded        link = "disconnected"
)

// ask is why the state was asked for.
type ask string

const (
	askRefresh ask = "refresh"
	askStatus  ask = "status"
)

// quitWithin is how long a second Ctrl-C may take.
const quitWithin = 2 * time.Second

// Messages besides those of the terminal.
type (
	// notices come from the client, oldest first.
	notices []client.Notice
	// ended: the client gave up.
	ended struct{ err error }
	// disarm comes after the press of Ctrl-C with this number.
	disarm struct{ press int }
	// second passes while a run is active.
	second struct{}
)

// effect is what the shell has to do.
//
//sumtype:decl
type effect interface{ isEffect() }

type (
	submit   struct{ input protocol.ChatInput }
	abort    struct{ run string }
	withdraw struct{ turn string }
	ack      struct{ seq uint64 }
	state    struct{}
	// after gives msg back when time has passed.
	after struct {
		wait time.Duration
		msg  any
	}
	quit    struct{}
	suspend struct{}
	redraw  struct{}
)

func (submit) isEffect()   {}
func (abort) isEffect()    {}
func (withdraw) isEffect() {}
func (ack) isEffect()      {}
func (state) isEffect()    {}
func (after) isEffect()    {}
func (quit) isEffect()     {}
func (suspend) isEffect()  {}
func (redraw) isEffect()   {}

// newModel begins a chat; keys must be unique to it.
func newModel(session, keys string) *model {
	m := &model{session: session, keys: keys, conn: linkConnecting, styles: newStyles()}
	m.input.set("")
	m.resize(80, 24)
	return m
}

// Update takes one message.
func (m *model) Update(msg any) []effect {
	var out []effect
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		out = m.key(msg)
	case tea.PasteMsg:
		m.input.insert(msg.Content)
	case notices:
		for _, n := range msg {
			out = append(out, m.notice(n)...)
		}
		out = append(out, m.refresh()...)
	case ended:
		m.end(msg.err)
	case disarm:
		m.armed = m.armed && msg.press != m.presses
	case second:
		m.ticking = false
		m.seconds++
	}
	out = append(out, m.tick()...)
	m.arrange()
	return out
}

// tick keeps the seconds of a run counted.
func (m *model) tick() []effect {
	if m.running == "" || m.ticking {
		return nil
	}
	m.ticking = true
	return []effect{after{time.Second, second{}}}
}

// refresh asks for the state if it has changed, one question at a time.
func (m *model) refresh() []effect {
	if !m.stale || m.conn != linkConnected {
		return nil
	}
	for _, a := range m.asks {
		if a == askRefresh {
			return nil
		}
	}
	m.stale = false
	m.asks = append(m.asks, askRefresh)
	return []effect{state{}}
}

// end: there is no connection any more, and none will come. The conversation stays to be read.
func (m *model) end(err error) {
	m.conn, m.running = linkEnded, ""
	if err != nil {
		m.log.fail(err.Error())
	}
}

// say sends the text of the input as a turn.
func (m *model) say(input protocol.ChatInput) []effect {
	m.sent++
	input.IdempotencyKey = m.keys + "-" + strconv.Itoa(m.sent)
	m.log.add(&entry{kind: kindUser, text: input.Text, key: input.IdempotencyKey, steer: input.Mode == protocol.ModeSteering})
	m.scroll = 0
	return []effect{submit{input}}
}

// unconfirmed gives the own inputs that the server has not confirmed, oldest first.
func (m *model) unconfirmed() []string {
	var texts []string
	for _, e := range m.log.entries {
		if e.waits() && e.stage == stageUnsent {
			texts = append(texts, e.text)
		}
	}
	return texts
}

// draft is what stands in the input.
func (m *model) draft() string { return strings.TrimSpace(m.input.text) }

// busy says whether there is anything to abort.
func (m *model) busy() bool {
	if m.running != "" {
		return true
	}
	for _, e := range m.log.entries {
		if e.waits() {
			return true
		}
	}
	return false
}
