package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/correx/correx-actors/messages/protocol"
)

// Queue modes of the load; none is the server's own, which is collect.
var (
	chaosModes     = []string{"", "collect", "followup", "followup", "followup", "steer", "steer_backlog", "interrupt"}
	chaosQuestions = []string{"thanks", "hello", "what did I say?", "what is the status?", "stop before the deployment"}
)

// chaosTurn is a turn that a client sent, and what it was told of it.
type chaosTurn struct {
	session, key, text, mode, queueMode, sender string
	// id and run are of the first acknowledgement, told are all states that the server spoke of since.
	id, run string
	told    []string
	// sent and acked are times of the crowd's clock.
	sent, acked int64
	// lost: an answer to it was lost, so that it may have been admitted although a later one was refused.
	lost bool
	// withdrawn: the server said that it was taken back.
	withdrawn bool
}

func (t *chaosTurn) frame() *protocol.ChatInput {
	return &protocol.ChatInput{
		SessionID: t.session, Text: t.text, Mode: t.mode, QueueMode: t.queueMode, Sender: t.sender, IdempotencyKey: t.key,
	}
}

// chaosAbort is an abort that was sent, and the turns that it named as stopped.
type chaosAbort struct {
	frame       protocol.Abort
	turns       []string
	sent, acked int64
}

// talker is one user. Several are called the same.
type talker struct {
	c     *chaos
	l     *line
	draw  *rand.Rand
	name  string
	turns int
	stops int
}

// talk says a few things at once, does something about them, and comes back a little later.
func (c *chaos) talk(n int) {
	k := &talker{c: c, l: &line{c: c}, draw: c.rand("talker", n), name: fmt.Sprintf("k%d", n)}
	defer k.l.drop()
	for !c.calm.Load() {
		// The lower numbers are drawn more often: these sessions are busy, the others leave memory in between.
		session := chaosSession(min(k.draw.IntN(chaosSessions), k.draw.IntN(chaosSessions)))
		habit := chaosTurn{session: session, sender: []string{"", "ada", "bob"}[n%3]}
		habit.mode, habit.queueMode = k.modes()
		var said []*chaosTurn
		for range 1 + k.draw.IntN(6) {
			turn := k.turn(habit)
			if k.draw.IntN(12) == 0 {
				k.lose(turn)
			}
			if k.submit(turn) {
				said = append(said, turn)
				k.act(said[k.draw.IntN(len(said))])
			}
		}
		time.Sleep(upTo(k.draw, 150*time.Millisecond))
	}
}

func (k *talker) modes() (mode, queueMode string) {
	return []string{protocol.ModeChat, protocol.ModeSteering}[k.draw.IntN(2)], chaosModes[k.draw.IntN(len(chaosModes))]
}

// turn is the next one to say. Most are of the modes of the one before, so that followups find others to join.
func (k *talker) turn(turn chaosTurn) *chaosTurn {
	k.turns++
	turn.key = fmt.Sprintf("%s-%d", k.name, k.turns)
	turn.text = chaosQuestions[k.draw.IntN(len(chaosQuestions))] + " " + turn.key
	if k.draw.IntN(3) == 0 {
		turn.mode, turn.queueMode = k.modes()
	}
	return &turn
}

// lose sends the turn and leaves before the answer. A sender that waits for it gets a refusal that holds; this one does not.
func (k *talker) lose(turn *chaosTurn) {
	turn.sent, turn.lost = k.c.clock.Add(1), true
	k.l.send(turn.frame())
	k.l.drop()
	k.c.happened("reply lost")
}

// submit sends a turn until it is admitted. One that was refused because the queue is full is given up, if that is certain.
func (k *talker) submit(turn *chaosTurn) (admitted bool) {
	if turn.sent == 0 {
		turn.sent = k.c.clock.Add(1)
	}
	for {
		answer, refused, again := k.l.ask(turn.frame())
		turn.lost = turn.lost || again
		k.c.served.Add(1)
		accepted, ok := answer.(*protocol.TurnAccepted)
		switch {
		case ok:
			k.accepted(turn, accepted)
			return true
		case refused == nil || refused.Code != "queue_full" || turn.id != "":
			k.c.fault("submit %+v: %s, %v", turn, shown(answer), refused)
			return false
		case !turn.lost:
			k.c.happened("queue_full")
			k.c.mu.Lock()
			defer k.c.mu.Unlock()
			k.c.refused = append(k.c.refused, turn)
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (k *talker) accepted(turn *chaosTurn, a *protocol.TurnAccepted) {
	k.c.happened(a.Disposition)
	turn.told = append(turn.told, a.State)
	if turn.id != "" || a.Disposition == "duplicate" {
		if turn.id == "" && !turn.lost {
			k.c.fault("I8: key %s is a duplicate at once: %s", turn.key, shown(a))
		}
		if turn.id != "" && (a.TurnID != turn.id || a.Disposition != "duplicate") {
			k.c.fault("I8: key %s is turn %s and %s", turn.key, turn.id, shown(a))
		}
	} else if !placed(turn, a) {
		k.c.fault("turn %+v is placed as %s", turn, shown(a))
	}
	if turn.id != "" {
		return
	}
	turn.id, turn.run, turn.acked = a.TurnID, a.RunID, k.c.clock.Add(1)
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	k.c.turns[turn.id] = turn
}

// placed says whether a queue mode may lead to a disposition.
func placed(turn *chaosTurn, a *protocol.TurnAccepted) bool {
	switch mode := turn.queueMode; a.Disposition {
	case "started":
		return a.State == "running" && a.RunID == chaosRunOf(a.TurnID)
	case "queued":
		return a.State == "queued" && a.RunID == chaosRunOf(a.TurnID) && (mode != "interrupt" || a.Position == 0)
	case "merged":
		return a.State == "queued" && a.RunID == chaosRunOf(a.MergedInto) && (mode == "followup" || mode == "steer")
	case "steering":
		return a.State == "offered" && a.RunID == chaosRunOf(a.TurnID) && (mode == "steer" || mode == "steer_backlog")
	}
	return false
}

// act does something about a turn that was acknowledged, or nothing.
func (k *talker) act(turn *chaosTurn) {
	switch k.draw.IntN(24) {
	case 0, 1:
		k.submit(turn)
	case 2:
		k.conflict(turn)
	case 3, 4, 5:
		k.withdraw(turn)
	case 6:
		k.withdraw(turn)
		k.withdraw(turn)
	case 7:
		k.abort(protocol.Abort{Scope: protocol.ScopeRun}, turn)
	case 8:
		k.abort(protocol.Abort{Scope: protocol.ScopeRun, RunID: turn.run}, turn)
	case 9:
		k.abort(protocol.Abort{Scope: protocol.ScopeTurn, TurnID: turn.id}, turn)
	case 10:
		if k.draw.IntN(2) == 0 {
			k.abort(protocol.Abort{Scope: protocol.ScopeSession}, turn)
		}
	case 11:
		k.l.drop()
	case 12, 13:
		k.look(turn)
	}
}

// conflict uses a key once more for something else.
func (k *talker) conflict(turn *chaosTurn) {
	other := turn.frame()
	other.Text += "!"
	answer, refused, _ := k.l.ask(other)
	if refused == nil || refused.Code != "idempotency_conflict" {
		k.c.fault("I8: key %s was used for two contents: %s, %v", turn.key, shown(answer), refused)
	}
}

func (k *talker) withdraw(turn *chaosTurn) {
	answer, refused, _ := k.l.ask(&protocol.Withdraw{SessionID: turn.session, TurnID: turn.id})
	withdrawn, ok := answer.(*protocol.Withdrawn)
	if !ok || withdrawn.TurnID != turn.id || withdrawn.Withdrawn != (withdrawn.State == "withdrawn") || turn.withdrawn && !withdrawn.Withdrawn {
		k.c.fault("withdraw %+v: %s, %v", turn, shown(answer), refused)
		return
	}
	turn.told = append(turn.told, withdrawn.State)
	turn.withdrawn = withdrawn.Withdrawn
}

// abort sends an abort under a reason of its own, by which the ends that it caused are known.
func (k *talker) abort(frame protocol.Abort, turn *chaosTurn) {
	k.stops++
	frame.SessionID, frame.Reason = turn.session, fmt.Sprintf("stop %d of %s", k.stops, k.name)
	a := &chaosAbort{frame: frame, sent: k.c.clock.Add(1)}
	k.c.mu.Lock()
	k.c.aborts[frame.Reason] = a
	k.c.mu.Unlock()
	answer, refused, _ := k.l.ask(&frame)
	aborted, ok := answer.(*protocol.Aborted)
	if !ok {
		k.c.fault("abort %s: %s, %v", shown(frame), shown(answer), refused)
		return
	}
	a.turns, a.acked = aborted.TurnIDs, k.c.clock.Add(1)
}

func (k *talker) look(turn *chaosTurn) {
	answer, refused, _ := k.l.ask(&protocol.GetTurn{SessionID: turn.session, TurnID: turn.id})
	told, ok := answer.(*protocol.Turn)
	if !ok {
		k.c.fault("I7: turn %+v: %s, %v", turn, shown(answer), refused)
		return
	}
	turn.told = append(turn.told, told.State)
}
