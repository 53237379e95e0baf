package offline

import (
	"fmt"
	"strings"

	"github.com/correx/correx-actors/core/contextpack"
	"github.com/correx/correx-actors/inference"
)

const (
	// shownStages bounds a list of stages in an answer; what is left out is counted.
	shownStages = 8
	// shownTurns and quoteBytes bound what is quoted of the conversation.
	shownTurns = 5
	quoteBytes = 200
)

// introduction closes the first answer of a conversation: whoever talks to the engine must know what it is.
const introduction = "I am the offline engine: no language model is connected, so I only know this session's workflow and conversation. " +
	"To talk to a model, set OPENAI_API_KEY (or OPENAI_BASE_URL for a compatible server) and start again."

// answer is the engine: a pure function of the pack.
func answer(brief contextpack.Brief, entries []contextpack.Entry) string {
	said, first := conversation(entries)
	newest := ""
	if len(said) > 0 {
		newest, said = said[len(said)-1], said[:len(said)-1]
	}
	text := reply(intentOf(newest), newest, said, brief)
	if first {
		text += "\n\n" + introduction
	}
	return text
}

// conversation gives what the user said, oldest first, and whether nobody has answered yet.
func conversation(entries []contextpack.Entry) (said []string, first bool) {
	first = true
	for _, entry := range entries {
		switch entry.Role {
		case contextpack.RoleUser:
			said = append(said, entry.Content)
		case contextpack.RoleAssistant:
			first = false
		case contextpack.RoleSystem:
		}
	}
	return said, first
}

func reply(asked intent, newest string, said []string, brief contextpack.Brief) string {
	switch asked {
	case intentStatus:
		return summary(brief)
	case intentFailed:
		if len(brief.Recovered) > 0 {
			return stages("failed", brief.Failed) + "\n\n" + stages("failed at first and succeeded later", brief.Recovered)
		}
		return stages("failed", brief.Failed)
	case intentDone:
		return stages("succeeded", brief.Succeeded)
	case intentCancelled:
		return stages("was cancelled", brief.Cancelled)
	case intentStage:
		return stage(brief)
	case intentSaid:
		return earlier(said)
	case intentHello:
		return "Hello! " + summary(brief) + "\n\nAsk me for the status, the current stage, what is done, what failed, or what you said before."
	case intentThanks:
		return "You are welcome."
	case intentHelp:
		return help
	case intentSteer:
		return "Noted: " + quote(newest) + "\n\n" +
			"I cannot act on it myself, and I do not change the workflow. Sent in STEERING mode, an instruction is recorded for the workflow word for word.\n\n" +
			summary(brief)
	case intentNone:
	}
	return "I cannot answer that without a language model, but this is what I know.\n\n" + summary(brief)
}

const help = "I can tell what this session knows:\n\n" +
	"- status: how the workflow stands\n" +
	"- current stage: what runs now\n" +
	"- what is done, what failed, what was cancelled\n" +
	"- what did I say: your earlier messages\n\n" +
	"An instruction is acknowledged. For everything else connect a model: set OPENAI_API_KEY or OPENAI_BASE_URL."

func summary(brief contextpack.Brief) string {
	lines := []string{statusLine(brief.Status)}
	if brief.CurrentStage != "" {
		lines = append(lines, "- Current stage: "+brief.CurrentStage)
	}
	for _, list := range []struct {
		title string
		names []string
	}{{"Succeeded", brief.Succeeded}, {"Failed", brief.Failed}, {"Cancelled", brief.Cancelled}} {
		if len(list.names) > 0 {
			lines = append(lines, "- "+list.title+": "+newestOf(list.names))
		}
	}
	if len(lines) == 1 {
		return lines[0] + " No stage has been reported."
	}
	return lines[0] + "\n\n" + strings.Join(lines[1:], "\n")
}

func statusLine(status string) string {
	switch strings.ToUpper(status) {
	case "":
		return "I was not told how the workflow stands."
	case "IDLE":
		return "The workflow has not started."
	case "RUNNING":
		return "The workflow is running."
	case "PAUSED":
		return "The workflow is paused."
	case "COMPLETED":
		return "The workflow has completed."
	case "FAILED":
		return "The workflow has failed."
	}
	return "The workflow's status is " + status + "."
}

func stage(brief contextpack.Brief) string {
	if brief.CurrentStage == "" {
		return "No stage is running. " + statusLine(brief.Status)
	}
	return "The current stage is " + brief.CurrentStage + ". " + statusLine(brief.Status)
}

// stages lists the names, newest last as in the brief.
func stages(verb string, names []string) string {
	if len(names) == 0 {
		return "As far as I know, no stage " + verb + "."
	}
	noun := "stages"
	if len(names) == 1 {
		noun = "stage"
	} else if verb == "was cancelled" {
		verb = "were cancelled"
	}
	shown, hidden := tail(names, shownStages)
	text := fmt.Sprintf("%d %s %s:\n", len(names), noun, verb) + bullets(shown)
	if hidden > 0 {
		text += fmt.Sprintf("\n- and %d earlier", hidden)
	}
	return text
}

func earlier(said []string) string {
	if len(said) == 0 {
		return "This is your first message that I can see."
	}
	shown, hidden := tail(said, shownTurns)
	text := "Before this you said:\n"
	if hidden > 0 {
		text = fmt.Sprintf("Before this you said (the newest %d of %d):\n", len(shown), len(said))
	}
	quotes := make([]string, len(shown))
	for i, turn := range shown {
		quotes[i] = quote(turn)
	}
	return text + bullets(quotes)
}

func bullets(items []string) string { return "\n- " + strings.Join(items, "\n- ") }

func newestOf(names []string) string {
	shown, hidden := tail(names, shownStages)
	text := strings.Join(shown, ", ")
	if hidden > 0 {
		text += fmt.Sprintf(" (and %d earlier)", hidden)
	}
	return text
}

func tail(all []string, limit int) (shown []string, hidden int) {
	hidden = max(len(all)-limit, 0)
	return all[hidden:], hidden
}

// quote puts a user's words on one line, bounded.
func quote(text string) string {
	return "“" + inference.Bound(strings.Join(strings.Fields(text), " "), quoteBytes) + "”"
}
