package tui

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/correx/correx-actors/cmd/correx-actors/client"
	"github.com/correx/correx-actors/messages/protocol"
)

// Each file of testdata/chat is a chat: what comes in, the effects that come out, and screens. The commands:
//
//	new size=WxH          a chat, of session s1 unless another is given, with keys k-1, k-2, …
//	size WxH              the terminal changes its size
//	type, paste           the input as text; \e stands for escape, \n for a line end
//	keys                  keys by name
//	connected [again]     a subscribed frame
//	lost, ended           the connection is lost for now, or for good
//	accepted key=K        a turn_accepted frame; refused and settled take what they are named after
//	frames                numbered items and answers, one a line
//	tick, disarm=N        a second passes; Ctrl-C number N is forgotten
//	unsent                what a chat that ends gives back
//	view                  the screen without colors; the cursor's place below
func TestScenarios(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/chat", func(t *testing.T, path string) {
		var c chat
		datadriven.RunTest(t, path, c.step)
	})
}

// chat is a model under test.
type chat struct{ m *model }

func (c *chat) step(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	var out []effect
	switch d.Cmd {
	case "new":
		session := "s1"
		d.MaybeScanArgs(t, "session", &session)
		c.m = newModel(session, "k")
		c.m.Update(sizeOf(t, d, "size"))
	case "size":
		out = c.m.Update(parseSize(t, d.CmdArgs[0].Key))
	case "type":
		for _, r := range d.Input {
			c.m.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	case "paste":
		out = c.m.Update(tea.PasteMsg{Content: unescape(d.Input)})
	case "keys":
		for _, arg := range d.CmdArgs {
			out = append(out, c.m.Update(keyOf(t, arg.Key))...)
		}
	case "tick":
		out = c.m.Update(second{})
	case "disarm":
		var press int
		d.ScanArgs(t, "press", &press)
		out = c.m.Update(disarm{press})
	case "ended":
		out = c.m.Update(ended{&client.UnreachableError{Server: "http://x", Err: errors.New(d.Input)}})
	case "unsent":
		return strings.Join(append(c.m.unconfirmed(), c.m.draft()), "\n")
	case "view":
		return c.view()
	default:
		out = c.m.Update(c.notices(t, d))
	}
	return printEffects(out)
}

// notices are what the client would tell.
func (c *chat) notices(t *testing.T, d *datadriven.TestData) notices {
	t.Helper()
	input := &protocol.ChatInput{}
	d.MaybeScanArgs(t, "key", &input.IdempotencyKey)
	switch d.Cmd {
	case "connected":
		return notices{&client.Connected{Start: decode[*protocol.Subscribed](t, d.Input), Again: d.HasArg("again")}}
	case "lost":
		return notices{&client.Lost{Err: &client.UnreachableError{Server: "http://x", Err: errors.New(d.Input)}}}
	case "accepted":
		return notices{&client.Accepted{Input: input, Turn: decode[*protocol.TurnAccepted](t, d.Input)}}
	case "refused":
		return notices{&client.Refused{Request: input, Err: decode[*protocol.Error](t, d.Input)}}
	case "settled":
		s := &client.Settled{Input: input}
		if d.Input != "" {
			s.Turn = decode[*protocol.Turn](t, d.Input)
			s.State, s.Reason = s.Turn.State, s.Turn.Reason
		}
		if d.MaybeScanArgs(t, "state", &s.State); d.HasArg("response") {
			s.Response = &protocol.RouterResponse{}
		}
		return notices{s}
	case "frames":
		var out notices
		for line := range strings.Lines(d.Input) {
			out = append(out, &client.Arrived{Frame: decode[protocol.ServerFrame](t, line)})
		}
		return out
	}
	t.Fatalf("unknown command %s", d.Cmd)
	return nil
}

func (c *chat) view() string {
	s := c.m.View()
	var b strings.Builder
	for _, line := range s.lines {
		fmt.Fprintf(&b, "|%s\n", strings.TrimRight(ansi.Strip(line), " "))
	}
	fmt.Fprintf(&b, "cursor %d,%d", s.x, s.y)
	return b.String()
}

func decode[F protocol.ServerFrame](t *testing.T, line string) F {
	t.Helper()
	frame, err := protocol.DecodeServer([]byte(line))
	require.NoError(t, err)
	f, ok := frame.(F)
	require.True(t, ok, line)
	return f
}

func unescape(s string) string {
	return strings.NewReplacer(`\e`, "\x1b", `\n`, "\n", `\r`, "\r", `\a`, "\a").Replace(s)
}

func sizeOf(t *testing.T, d *datadriven.TestData, name string) tea.WindowSizeMsg {
	t.Helper()
	size := "60x16"
	d.MaybeScanArgs(t, name, &size)
	return parseSize(t, size)
}

func parseSize(t *testing.T, size string) tea.WindowSizeMsg {
	t.Helper()
	var msg tea.WindowSizeMsg
	_, err := fmt.Sscanf(size, "%dx%d", &msg.Width, &msg.Height)
	require.NoError(t, err)
	return msg
}

func keyOf(t *testing.T, name string) tea.KeyPressMsg {
	t.Helper()
	var k tea.KeyPressMsg
	for {
		mod, rest, found := strings.Cut(name, "+")
		if !found {
			break
		}
		k.Mod |= map[string]tea.KeyMod{"ctrl": tea.ModCtrl, "alt": tea.ModAlt}[mod]
		name = rest
	}
	named := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
		"right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "backspace": tea.KeyBackspace,
		"home": tea.KeyHome, "end": tea.KeyEnd,
	}
	k.Code = named[name]
	if k.Code == 0 {
		require.Len(t, name, 1)
		k.Code = rune(name[0])
		if k.Mod == 0 {
			k.Text = name
		}
	}
	return k
}

func printEffects(effects []effect) string {
	var lines []string
	for _, e := range effects {
		switch e := e.(type) {
		case submit:
			mode := strings.TrimSpace(e.input.Mode + " " + e.input.QueueMode)
			lines = append(lines, fmt.Sprintf("submit %s %s %q", e.input.IdempotencyKey, mode, e.input.Text))
		case withdraw:
			lines = append(lines, "withdraw "+e.turn)
		case abort:
			lines = append(lines, strings.TrimSpace("abort "+e.run))
		case ack:
			lines = append(lines, fmt.Sprintf("ack %d", e.seq))
		case state:
			lines = append(lines, "ask for the state")
		case after:
			lines = append(lines, fmt.Sprintf("after %s %T%v", e.wait, e.msg, e.msg))
		case quit:
			lines = append(lines, "quit")
		case suspend:
			lines = append(lines, "suspend")
		case redraw:
			lines = append(lines, "redraw")
		}
	}
	return strings.Join(lines, "\n")
}
