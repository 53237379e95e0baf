package kernel

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
)

// envEscalate makes the test binary run the stock half of defect 12, which ends the process.
const envEscalate = "KERNEL_TEST_ESCALATE"

func TestMain(m *testing.M) {
	if os.Getenv(envEscalate) != "" {
		escalateOnStock()
	}
	os.Exit(m.Run())
}

// alwaysEscalate is a strategy that leaves everything to the next level.
func alwaysEscalate() actor.SupervisorStrategy {
	return actor.NewOneForOneStrategy(1, time.Second, func(any) actor.Directive { return actor.EscalateDirective })
}

// escalateOnStock runs in a process of its own, as it ends the process.
func escalateOnStock() {
	stock := newStock()
	pid := stock.Root.Spawn(actor.PropsFromFunc(echo, actor.WithGuardian(alwaysEscalate())))
	stock.Root.Send(pid, boom{})
	_ = stock.Root.PoisonFuture(pid).Wait()
	os.Exit(0)
}

func TestDefect12EscalationAtTheRootEndsTheProcess(t *testing.T) {
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), envEscalate+"=1")
	output, err := child.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "guardian cannot escalate failure")

	s := New(Config{Supervisor: alwaysEscalate()})
	t.Cleanup(func() { shutdown(t, s) })
	pid, other := spawnFunc(t, s, echo), spawnFunc(t, s, echo)
	_, err = s.Ask(t.Context(), pid, boom{})
	require.ErrorIs(t, err, ErrFailed)
	_, err = s.Ask(t.Context(), pid, ping{})
	require.ErrorIs(t, err, ErrStopped)
	_, err = s.Ask(t.Context(), other, ping{})
	require.NoError(t, err)
}
